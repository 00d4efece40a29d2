#include "dist/exchange.h"

#include "core/error.h"
#include "dist/thread_ranks.h"
#include "support/catch.h"

namespace olmo::dist {
namespace {

TEST_CASE("every rank learns the values of all", "[dist]") {
  run_ranks(4, [](Communicator& ranks) {
    const auto all = all_gather_value(ranks, 1.5 * ranks.rank());
    OLMO_CHECK((all == std::vector<double>{0, 1.5, 3, 4.5}));
  });
}

TEST_CASE("texts of any length are gathered and broadcast", "[dist]") {
  run_ranks(3, [](Communicator& ranks) {
    const std::string mine(static_cast<std::size_t>(ranks.rank()) * 10, 'x');
    const auto all = all_gather_text(ranks, mine);
    OLMO_CHECK(all.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) OLMO_CHECK(all[i] == std::string(10 * i, 'x'));
    OLMO_CHECK(broadcast_text(ranks, mine, 2) == std::string(20, 'x'));
    OLMO_CHECK(broadcast_text(ranks, mine, 0).empty());
    OLMO_CHECK(broadcast_value(ranks, ranks.rank() + 0.5, 1) == 1.5);
  });
}

}  // namespace
}  // namespace olmo::dist
