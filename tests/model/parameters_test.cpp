#include "model/parameters.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"

using olmo::NamedTensors;
using olmo::model::parameter_specs;
using olmo::model::ParameterRole;

namespace {

NamedTensors numbered(const olmo::model::ModelConfig& config, at::ScalarType dtype = at::kFloat) {
  NamedTensors tensors;
  double first = 0.0;
  for (const auto& spec : parameter_specs(config)) {
    tensors.push_back({spec.name, (at::arange(c10::multiply_integers(spec.shape)) % 128 + first)
                                      .to(dtype)
                                      .view(spec.shape)});
    first += 1.0;
  }
  return tensors;
}

std::string message_of_copy(const NamedTensors& source, const NamedTensors& target) {
  try {
    olmo::model::copy_tensors(source, target);
  } catch (const olmo::Error& error) {
    CHECK(error.kind() == olmo::ErrorKind::kInput);
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a tied model without norm weights has four matrices a block and the embedding",
          "[model]") {
  const auto specs = parameter_specs(olmo::test::tiny_config());
  REQUIRE(specs.size() == 9);
  CHECK(specs[0].name == "transformer.wte.weight");
  CHECK(specs[0].shape == std::vector<std::int64_t>{64, 32});
  CHECK(specs[3].name == "transformer.blocks.0.att_proj.weight");
  CHECK(specs[3].shape == std::vector<std::int64_t>{96, 32});
  CHECK(specs[8].name == "transformer.blocks.1.ff_proj.weight");
  CHECK(specs[8].shape == std::vector<std::int64_t>{256, 32});
  CHECK(specs[8].role == ParameterRole::kFfProj);
  CHECK(specs[8].layer == 1);
}

TEST_CASE("grouped queries shrink att_proj and k_norm", "[model]") {
  auto config = olmo::test::tiny_config();
  config.n_kv_heads = 1;
  config.attention_layer_norm = true;
  for (const auto& spec : parameter_specs(config)) {
    if (spec.name == "transformer.blocks.0.att_proj.weight")
      CHECK(spec.shape == std::vector<std::int64_t>{48, 32});
    if (spec.name == "transformer.blocks.0.k_norm.weight")
      CHECK(spec.shape == std::vector<std::int64_t>{8});
    if (spec.name == "transformer.blocks.0.q_norm.weight")
      CHECK(spec.shape == std::vector<std::int64_t>{32});
  }
}

TEST_CASE("placed tensors are the listed ones, and a tied head is the embedding", "[model]") {
  const auto config = olmo::test::tiny_config();
  const auto tensors = numbered(config);
  const auto places = olmo::model::place_tensors(config, tensors);
  CHECK(places.wte.is_same(tensors[0].tensor));
  CHECK(places.head.is_same(tensors[0].tensor));
  CHECK(places.blocks[1].ff_proj.is_same(tensors[8].tensor));
  CHECK_FALSE(places.ln_f.weight.defined());
}

TEST_CASE("weights are copied by name, whatever their order, and raised exactly from bf16",
          "[model]") {
  const auto config = olmo::test::tiny_config();
  auto source = numbered(config, at::kBFloat16);
  const auto target = olmo::model::make_tensors(parameter_specs(config));
  std::reverse(source.begin(), source.end());
  olmo::model::copy_tensors(source, target);
  const auto expected = numbered(config);
  for (std::size_t i = 0; i < target.size(); ++i)
    CHECK(olmo::test::same_bits(target[i].tensor, expected[i].tensor));
}

TEST_CASE("weights that do not fit the model are refused whole, and every fault is named",
          "[model]") {
  const auto config = olmo::test::tiny_config();
  const auto target = numbered(config);
  auto source = numbered(config);
  source[1].name = "transformer.blocks.0.attn_uot.weight";
  source[2].tensor = at::ones({3, 4});
  source[3].tensor = source[3].tensor.to(at::kDouble);
  source.push_back(source[0]);
  const auto message = message_of_copy(source, target);
  CHECK(message.find("`transformer.blocks.0.attn_out.weight` is missing") != std::string::npos);
  CHECK(message.find("`transformer.blocks.0.attn_uot.weight` is not a parameter of this model") !=
        std::string::npos);
  CHECK(message.find("`transformer.blocks.0.ff_out.weight` has shape (3, 4), expected (32, 128)") !=
        std::string::npos);
  CHECK(message.find(
            "`transformer.blocks.0.att_proj.weight` is Double, expected fp32, bf16 or fp16") !=
        std::string::npos);
  CHECK(message.find("`transformer.wte.weight` is there twice") != std::string::npos);
  const auto before = numbered(config);
  for (std::size_t i = 0; i < target.size(); ++i)
    CHECK(olmo::test::same_bits(target[i].tensor, before[i].tensor));
}
