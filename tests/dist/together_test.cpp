#include "dist/together.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "core/error.h"
#include "dist/thread_ranks.h"
#include "support/catch.h"

namespace olmo::dist {
namespace {

struct Thrown {
  ErrorKind kind;
  std::string text;
};

/// What each of four ranks throws that does `work`.
std::vector<Thrown> thrown_by_all(const std::function<void(Communicator&)>& work) {
  std::vector<Thrown> thrown;
  std::mutex mutex;
  run_ranks(4, [&](Communicator& ranks) {
    try {
      work(ranks);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      thrown.push_back({error.kind(), error.what()});
    }
    ranks.barrier();  // all are still in step
  });
  return thrown;
}

/// What each of four ranks throws if `work(rank)` is theirs.
std::vector<Thrown> thrown_by(const std::function<void(int)>& work) {
  return thrown_by_all([&](Communicator& ranks) { together(ranks, [&] { work(ranks.rank()); }); });
}

TEST_CASE("what fails on some ranks is thrown by all, as the error of the lowest", "[dist]") {
  const auto thrown = thrown_by([](int rank) {
    if (rank == 1) throw Error(ErrorKind::kDamaged, "step8: is damaged");
    if (rank == 3) throw std::bad_alloc();
  });
  REQUIRE(thrown.size() == 4);
  for (const auto& [kind, text] : thrown) {
    CHECK(kind == ErrorKind::kDamaged);
    CHECK(text == "rank 1: step8: is damaged");
  }
}

TEST_CASE("what fails on all ranks names none", "[dist]") {
  const auto thrown =
      thrown_by([](int) { throw Error(ErrorKind::kInput, "step8: cannot be read"); });
  REQUIRE(thrown.size() == 4);
  CHECK(thrown.front().text == "step8: cannot be read");
}

TEST_CASE("an error of another kind is a failure", "[dist]") {
  const auto thrown = thrown_by([](int rank) {
    if (rank == 2) throw std::bad_alloc();
  });
  REQUIRE(thrown.size() == 4);
  CHECK(thrown.front().kind == ErrorKind::kFailure);
  CHECK(thrown.front().text == "rank 2: std::bad_alloc");
}

TEST_CASE("where nothing fails, nothing is thrown", "[dist]") {
  CHECK(thrown_by([](int) {}).empty());
}

TEST_CASE("a rank alone throws its error as it is", "[dist]") {
  const auto ranks = alone();
  CHECK_THROWS_WITH(together(*ranks, [] { throw Error(ErrorKind::kInput, "no such file"); }),
                    "no such file");
  CHECK_THROWS_AS(together(*ranks, [] { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST_CASE("what rank 0 decides alone fails on all ranks", "[dist]") {
  std::atomic<int> calls{0};
  const auto thrown = thrown_by_all([&](Communicator& ranks) {
    decide(ranks, [&] {
      ++calls;
      throw Error(ErrorKind::kUsage, "the folder is locked");
    });
  });
  CHECK(calls == 1);
  REQUIRE(thrown.size() == 4);
  for (const auto& [kind, text] : thrown) {
    CHECK(kind == ErrorKind::kUsage);
    CHECK(text == "the folder is locked");
  }
}

TEST_CASE("a rank alone that decides throws its error as it is", "[dist]") {
  const auto ranks = alone();
  CHECK_THROWS_AS(decide(*ranks, [] { throw std::bad_alloc(); }), std::bad_alloc);
}

}  // namespace
}  // namespace olmo::dist
