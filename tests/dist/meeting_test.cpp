#include "dist/meeting.h"

#include <atomic>
#include <thread>

#include "core/error.h"
#include "dist/memory_store.h"
#include "support/catch.h"

namespace olmo::dist {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

TEST_CASE("no rank goes on before all have come", "[dist]") {
  const auto store = memory_store();
  std::atomic<int> came = 0, early = 0;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 5; ++rank) {
    threads.emplace_back([&, rank, mine = store->again()] {
      std::this_thread::sleep_for(10ms * rank);
      ++came;
      if (!meet(*mine, rank, 5, 60s).empty() || came != 5) ++early;
    });
  }
  threads.clear();
  CHECK(early == 0);
}

TEST_CASE("the ranks that have not come within the limit are known to each that has", "[dist]") {
  const auto store = memory_store();
  const int rank = GENERATE(0, 2);
  const int other = 2 - rank;
  CHECK((meet(*store, rank, 4, 2ms) == std::vector<int>{rank == 0 ? 1 : 0, rank == 0 ? 2 : 1, 3}));
  CHECK((meet(*store, other, 4, 2ms) == std::vector<int>{1, 3}));
}

TEST_CASE("a failure that the check knows ends the meeting", "[dist]") {
  const auto check = [] { throw Error(ErrorKind::kStopped, "rank 3 failed"); };
  const auto store = memory_store();
  CHECK_THROWS_WITH(meet(*store, GENERATE(0, 1), 4, 60s, check), Contains("rank 3 failed"));
}

}  // namespace
}  // namespace olmo::dist
