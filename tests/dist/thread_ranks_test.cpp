#include "dist/thread_ranks.h"

#include <atomic>
#include <string>

#include "core/error.h"
#include "support/catch.h"

namespace olmo::dist {
namespace {

TEST_CASE("every rank runs once", "[dist]") {
  std::atomic<int> sum = 0;
  run_ranks(216, [&](Communicator& ranks) {
    REQUIRE(ranks.size() == 216);
    sum += ranks.rank();
    ranks.barrier();
  });
  CHECK(sum == 215 * 216 / 2);
}

TEST_CASE("the error of a rank ends the waits of the others and is thrown once", "[dist]") {
  std::atomic<int> told = 0;
  const auto run = [&] {
    run_ranks(3, [&](Communicator& ranks) {
      if (ranks.rank() == 1) throw Error(ErrorKind::kInput, "no token file");
      try {
        ranks.barrier();
      } catch (const Error& error) {
        if (std::string(error.what()) == "rank 1 failed: no token file") ++told;
        throw;
      }
    });
  };
  try {
    run();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "no token file");
    CHECK(error.kind() == ErrorKind::kInput);
  }
  CHECK(told == 2);
}

}  // namespace
}  // namespace olmo::dist
