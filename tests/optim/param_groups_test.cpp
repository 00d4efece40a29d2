#include "optim/param_groups.h"

#include "core/error.h"
#include "support/catch.h"

namespace olmo::optim {
namespace {

const std::vector<std::string> kNames = {
    "transformer.wte.weight",
    "transformer.blocks.0.att_proj.weight",
    "transformer.blocks.0.att_proj.bias",
    "transformer.blocks.0.k_norm.weight",
    "transformer.blocks.0.attn_norm.weight",
    "transformer.blocks.10.ff_proj.weight",
    "transformer.blocks.2.ff_out.weight",
    "transformer.ln_f.weight",
    "transformer.ff_out.weight",
};

}  // namespace

TEST_CASE("by default linear weights decay and norms, biases and embeddings do not", "[optim]") {
  OptimizerConfig config;
  config.weight_decay = 0.1;
  const auto groups = param_groups(config, kNames);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].weight_decay == 0.1);
  CHECK(groups[0].names == std::vector<std::string>{"transformer.blocks.0.att_proj.weight",
                                                    "transformer.blocks.10.ff_proj.weight",
                                                    "transformer.blocks.2.ff_out.weight",
                                                    "transformer.ff_out.weight"});
  CHECK(groups[1].weight_decay == 0.0);
  CHECK(groups[1].names == std::vector<std::string>{"transformer.blocks.0.att_proj.bias",
                                                    "transformer.blocks.0.attn_norm.weight",
                                                    "transformer.blocks.0.k_norm.weight",
                                                    "transformer.ln_f.weight",
                                                    "transformer.wte.weight"});
}

TEST_CASE("decay_norm_and_bias moves norms and biases, decay_embeddings the embedding", "[optim]") {
  OptimizerConfig config;
  config.decay_norm_and_bias = true;
  auto groups = param_groups(config, kNames);
  REQUIRE(groups.size() == 2);
  CHECK(groups[1].names == std::vector<std::string>{"transformer.wte.weight"});
  config.decay_embeddings = true;
  groups = param_groups(config, kNames);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].names.size() == kNames.size());
}

TEST_CASE("a parameter of no known kind is refused by name", "[optim]") {
  const std::vector<std::string> names = {"transformer.blocks.0.router.weight"};
  CHECK_THROWS_WITH(param_groups({}, names),
                    Catch::Matchers::Contains("transformer.blocks.0.router.weight"));
  CHECK_THROWS_AS(param_kind("weight"), Error);
  CHECK_THROWS_AS(param_kind(""), Error);
}

}  // namespace olmo::optim
