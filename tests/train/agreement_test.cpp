#include "train/agreement.h"

#include <atomic>
#include <csignal>

#include "dist/thread_ranks.h"
#include "support/catch.h"

namespace olmo::train {
namespace {

using Catch::Matchers::Contains;
using dist::Communicator;
using dist::run_ranks;

/// What a rank throws that calls `work`, as "kind: message"; empty: nothing.
template <class Work>
std::string thrown_by(const Work& work) {
  try {
    work();
  } catch (const dist::AgreedError& error) {
    return std::to_string(static_cast<int>(error.kind())) + ": " + error.what();
  }
  return {};
}

TEST_CASE("what one rank cannot do, all ranks throw in its words", "[train]") {
  std::atomic<int> alike{0};
  run_ranks(3, [&](Communicator& ranks) {
    const auto thrown = thrown_by([&] {
      agree(ranks, [&] {
        if (ranks.rank() == 2) throw Error(ErrorKind::kInput, "a.npy: is not there");
      });
    });
    if (thrown == "3: rank 2: a.npy: is not there") ++alike;
    ranks.barrier();  // no rank has left the others behind
  });
  CHECK(alike == 3);
}

TEST_CASE("an error of all ranks is no one's", "[train]") {
  run_ranks(2, [&](Communicator& ranks) {
    const auto thrown =
        thrown_by([&] { agree(ranks, [] { throw Error(ErrorKind::kUsage, "no such key"); }); });
    REQUIRE(thrown == "2: no such key");
  });
}

TEST_CASE("of several errors that of the lowest rank is thrown", "[train]") {
  run_ranks(3, [&](Communicator& ranks) {
    const auto thrown = thrown_by([&] {
      agree(ranks, [&] {
        if (ranks.rank() > 0) throw std::runtime_error("memory " + std::to_string(ranks.rank()));
      });
    });
    REQUIRE(thrown == "1: rank 1: memory 1");
  });
}

TEST_CASE("what rank 0 decides alone fails on all ranks", "[train]") {
  std::atomic<int> calls{0};
  run_ranks(3, [&](Communicator& ranks) {
    const auto thrown = thrown_by([&] {
      decide(ranks, [&] {
        ++calls;
        throw Error(ErrorKind::kUsage, "the folder is locked");
      });
    });
    REQUIRE(thrown == "2: the folder is locked");
  });
  CHECK(calls == 1);
}

TEST_CASE("one process throws its own error", "[train]") {
  const auto alone = dist::alone();
  CHECK_THROWS_AS(agree(*alone, [] { throw std::bad_alloc(); }), std::bad_alloc);
  CHECK_THROWS_AS(decide(*alone, [] { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST_CASE("the signal of the lowest rank that has one holds for all", "[train]") {
  std::vector<StepReport> reports(3);
  CHECK(signal_of(reports).request == StopRequest::kNone);
  reports[2].stop = static_cast<std::int32_t>(StopRequest::kInterrupt);
  reports[2].signal = {"SIGINT"};
  CHECK(signal_of(reports).request == StopRequest::kInterrupt);
  CHECK(signal_of(reports).name == "SIGINT on rank 2");
  reports[0].stop = static_cast<std::int32_t>(StopRequest::kStop);
  reports[0].signal = {"SIGTERM"};
  CHECK(signal_of(reports).request == StopRequest::kStop);
  CHECK(signal_of(reports).name == "SIGTERM");
}

TEST_CASE("a report tells the signal that came", "[train]") {
  const StopSignals signals;
  CHECK(report_of(signals).stop == static_cast<std::int32_t>(StopRequest::kNone));
  std::raise(SIGUSR1);
  const std::vector<StepReport> reports = {report_of(signals)};
  CHECK(signal_of(reports).name == "SIGUSR1");
}

TEST_CASE("an error in a report is thrown by every rank", "[train]") {
  run_ranks(3, [&](Communicator& ranks) {
    std::optional<Error> mine;
    StepReport report;
    if (ranks.rank() == 1) {
      mine.emplace(ErrorKind::kInput, "a.npy: token 7 is 999");
      report.error = static_cast<std::int32_t>(mine->kind());
    }
    const auto reports = exchange_reports(ranks, report);
    const auto thrown = thrown_by([&] { throw_agreed(ranks, reports, mine); });
    REQUIRE(thrown == "3: rank 1: a.npy: token 7 is 999");
  });
}

}  // namespace
}  // namespace olmo::train
