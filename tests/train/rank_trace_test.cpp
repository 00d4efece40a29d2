#include "train/rank_trace.h"

#include "dist/thread_ranks.h"
#include "support/catch.h"

namespace olmo::train {
namespace {

Digest digest_of(int value) { return sha256(std::to_string(value)); }

}  // namespace

TEST_CASE("what ranks traced is one trace, in the order of one process, on every rank", "[train]") {
  std::vector<std::vector<OpDigest>> traces(3);
  dist::run_ranks(3, [&](dist::Communicator& ranks) {
    // Places 0 to 5 dealt round-robin, two operations each; rank 2 has but one place.
    std::vector<PlacedDigest> mine;
    for (int place = ranks.rank(); place < 5; place += 3) {
      mine.push_back({place, {"op " + std::to_string(place) + "/b", digest_of(2 * place)}});
      mine.push_back({place, {"op " + std::to_string(place) + "/a", digest_of(2 * place + 1)}});
    }
    OpTrace trace;
    trace.append({"before", digest_of(-1)});
    gather_trace(ranks, mine, trace);
    traces[static_cast<std::size_t>(ranks.rank())] = trace.digests();
  });
  for (const auto& trace : traces) {
    REQUIRE(trace.size() == 11);
    CHECK(trace[0].operation == "before");
    for (int place = 0; place < 5; ++place) {
      const auto at = static_cast<std::size_t>(1 + 2 * place);
      CHECK(trace[at].operation == "op " + std::to_string(place) + "/b");
      CHECK(trace[at].digest == digest_of(2 * place));
      CHECK(trace[at + 1].operation == "op " + std::to_string(place) + "/a");
      CHECK(trace[at + 1].digest == digest_of(2 * place + 1));
    }
  }
}

}  // namespace olmo::train
