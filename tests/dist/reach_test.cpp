#include "dist/reach.h"

#include <future>

#include "core/error.h"
#include "dist/memory_store.h"
#include "dist/watch.h"
#include "support/catch.h"

namespace olmo::dist {
namespace {

using Catch::Matchers::Contains;

/// An address of this machine that is not one of its loopback's names, though it leads there.
constexpr char kHere[] = "0.0.0.0";

TEST_CASE("ranks that let each other connect go on", "[dist]") {
  const auto values = std::make_shared<MemoryValues>();
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.push_back(std::async(std::launch::async, [&values, rank] {
      MemoryStore store(values);
      require_reach(store, {.rank = rank, .size = 3, .address = kHere});
    }));
  for (auto& rank : ranks) CHECK_NOTHROW(rank.get());
}

TEST_CASE("a rank that nothing leads to is named with the reason", "[dist]") {
  MemoryStore store(std::make_shared<MemoryValues>());
  ProcessIdentity other;
  other.host = "node7";
  other.pid = 42;
  enlist(store, 1, other);
  store.set("reach/1", "127.0.0.1 1");
  CHECK_THROWS_WITH(require_reach(store, {.rank = 0, .size = 2, .address = kHere}),
                    Contains("rank 1 (process 42 on node7) at 127.0.0.1, port 1") &&
                        Contains("Connection refused") && Contains("any port"));
}

TEST_CASE("ranks of one machine are not tried, nor ranks that do not say where they listen",
          "[dist]") {
  MemoryStore store(std::make_shared<MemoryValues>());
  require_reach(store, {.rank = 1, .size = 2});
  CHECK_NOTHROW(require_reach(store, {.rank = 0, .size = 2, .address = kHere}));
  CHECK_NOTHROW(require_reach(store, {.rank = 0, .size = 2, .address = "127.0.0.1"}));
}

}  // namespace
}  // namespace olmo::dist
