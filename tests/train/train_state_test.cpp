#include "train/train_state.h"

#include <nlohmann/json.hpp>

#include "support/catch.h"

using namespace olmo;

namespace {

Json a_state() {
  return {{"step", 3},         {"tokens_seen", 768},
          {"run_id", "r"},     {"experiment_digest", std::string(64, 'e')},
          {"chain_format", 2}, {"chain_hash", std::string(64, 'c')}};
}

}  // namespace

TEST_CASE("a checkpoint that does not name the format of its chain has the first", "[train]") {
  Json state = a_state();
  CHECK(train::read_state(state, "here").chain_format == 2);
  state.erase("chain_format");
  CHECK(train::read_state(state, "here").chain_format == 1);
}

TEST_CASE("a state that lacks a counter is damaged, and the counter is named", "[train]") {
  Json state = a_state();
  state.erase("tokens_seen");
  CHECK_THROWS_WITH(train::read_state(state, "here"),
                    "here: the trainer state has no usable `tokens_seen`");
}
