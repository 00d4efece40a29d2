#include "model/init.h"

#include <cmath>

#include <ATen/Parallel.h>

#include "core/philox.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"

using olmo::NamedTensors;
using olmo::model::init_rule;
using olmo::model::ModelConfig;
using olmo::model::parameter_specs;
using olmo::model::ParameterRole;
using olmo::model::ParameterSpec;

namespace {

const olmo::Policy kPolicy = olmo::resolve_policy("portable", "auto", 0);

ModelConfig medium_config() {
  auto config = olmo::test::tiny_config();
  config.d_model = 256;
  config.n_layers = 3;
  config.embedding_size = 512;
  config.weight_tying = false;
  return config;
}

NamedTensors initialised(const ModelConfig& config, std::uint64_t seed) {
  auto parameters = olmo::model::make_tensors(parameter_specs(config));
  olmo::model::init_parameters(kPolicy, config, seed, parameters);
  return parameters;
}

ParameterSpec find_spec(const ModelConfig& config, ParameterRole role, std::int64_t layer) {
  for (const auto& spec : parameter_specs(config)) {
    if (spec.role == role && spec.layer == layer) return spec;
  }
  FAIL("no such parameter");
  return {};
}

double std_rule(const ModelConfig& config, ParameterRole role, std::int64_t layer) {
  return init_rule(config, find_spec(config, role, layer)).std;
}

}  // namespace

TEST_CASE(
    "mitchell: standard deviations fall with width, and with depth for what feeds the residual "
    "stream",
    "[model]") {
  const auto config = medium_config();
  CHECK(std_rule(config, ParameterRole::kEmbedding, -1) == Approx(1.0 / 16));
  CHECK(std_rule(config, ParameterRole::kHead, -1) == Approx(1.0 / 16));
  CHECK(std_rule(config, ParameterRole::kAttProj, 2) == Approx(1.0 / 16));
  CHECK(std_rule(config, ParameterRole::kFfProj, 2) == Approx(1.0 / 16));
  CHECK(std_rule(config, ParameterRole::kAttnOut, 2) == Approx(1.0 / std::sqrt(2.0 * 256 * 3)));
  CHECK(std_rule(config, ParameterRole::kFfOut, 1) == Approx(1.0 / std::sqrt(2.0 * 1024 * 2)));
  CHECK(init_rule(config, find_spec(config, ParameterRole::kAttProj, 0)).cutoff == 3.0);
}

TEST_CASE("normal: one standard deviation, a cutoff only if given, emb_init_std for the embedding",
          "[model]") {
  auto config = medium_config();
  config.init_fn = "normal";
  config.init_std = 0.03;
  CHECK(std_rule(config, ParameterRole::kFfOut, 2) == 0.03);
  CHECK(std_rule(config, ParameterRole::kEmbedding, -1) == 0.03);
  CHECK_FALSE(init_rule(config, find_spec(config, ParameterRole::kHead, -1)).cutoff.has_value());
  config.emb_init_std = 1.0;
  config.init_cutoff_factor = 2.5;
  CHECK(std_rule(config, ParameterRole::kEmbedding, -1) == 1.0);
  CHECK(init_rule(config, find_spec(config, ParameterRole::kHead, -1)).cutoff == 2.5);
}

TEST_CASE("full_megatron: outputs by total depth, head by width, embedding scaled if asked",
          "[model]") {
  auto config = medium_config();
  config.init_fn = "full_megatron";
  CHECK(std_rule(config, ParameterRole::kAttnOut, 0) == Approx(0.02 / std::sqrt(6.0)));
  CHECK(std_rule(config, ParameterRole::kFfOut, 2) == Approx(0.02 / std::sqrt(6.0)));
  CHECK(std_rule(config, ParameterRole::kAttProj, 0) == 0.02);
  CHECK(std_rule(config, ParameterRole::kHead, -1) == Approx(1.0 / 16));
  CHECK(std_rule(config, ParameterRole::kEmbedding, -1) == 0.02);
  config.scale_emb_init = true;
  CHECK(std_rule(config, ParameterRole::kEmbedding, -1) == Approx(0.02 * 16));
  config.emb_init_std = 0.5;
  CHECK(std_rule(config, ParameterRole::kEmbedding, -1) == 0.5);
}

TEST_CASE("every parameter has its rule's spread and bound; norms are ones and zeros", "[model]") {
  auto config = medium_config();
  config.layer_norm_with_affine = true;
  config.bias_for_layer_norm = true;
  constexpr double kTruncatedStd =
      0.98658;  // of a normal distribution cut at 3 standard deviations
  const auto specs = parameter_specs(config);
  const auto parameters = initialised(config, 6198);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    INFO(specs[i].name);
    const auto values = parameters[i].tensor.to(at::kDouble);
    if (specs[i].role == ParameterRole::kNormWeight || specs[i].role == ParameterRole::kNormBias) {
      CHECK(values.eq(specs[i].role == ParameterRole::kNormWeight ? 1.0 : 0.0).all().item<bool>());
      continue;
    }
    const double std = init_rule(config, specs[i]).std;
    const double error = 5.0 / std::sqrt(static_cast<double>(values.numel()));
    CHECK(std::abs(values.mean().item<double>()) < error * std);
    CHECK(std::abs(values.std().item<double>() / std - kTruncatedStd) < error);
    CHECK(values.abs().max().item<double>() <= 3.0 * std * (1 + 1e-7));
    CHECK(values.abs().max().item<double>() > 2.9 * std);
  }
}

TEST_CASE("initial values depend on seed and name, not on threads, order or the other parameters",
          "[model]") {
  const auto config = medium_config();
  const auto reference = initialised(config, 1);
  at::set_num_threads(1);
  const auto one_thread = initialised(config, 1);
  at::set_num_threads(kPolicy.threads);
  const auto other_seed = initialised(config, 2);
  auto deeper = config;
  deeper.n_layers = 4;
  const auto in_deeper = initialised(deeper, 1);
  for (std::size_t i = 0; i < reference.size(); ++i) {
    INFO(reference[i].name);
    CHECK(olmo::test::same_bits(reference[i].tensor, one_thread[i].tensor));
    CHECK_FALSE(olmo::test::same_bits(reference[i].tensor, other_seed[i].tensor));
    if (reference[i].name != "transformer.ff_out.weight")
      CHECK(olmo::test::same_bits(reference[i].tensor, in_deeper[i].tensor));
  }
}

TEST_CASE("a slice drawn by itself is the slice of the whole tensor", "[model]") {
  const auto config = medium_config();
  const auto parameters = initialised(config, 3);
  const auto spec = find_spec(config, ParameterRole::kFfProj, 1);
  const auto rule = init_rule(config, spec);
  const auto whole = std::find_if(parameters.begin(), parameters.end(), [&](const auto& entry) {
                       return entry.name == spec.name;
                     })->tensor;
  std::vector<float> slice(1000);
  olmo::PhiloxStream(3, spec.name).fill_normal(kPolicy, 12345, rule.std, rule.cutoff, slice);
  CHECK(std::memcmp(slice.data(), whole.data_ptr<float>() + 12345, slice.size() * sizeof(float)) ==
        0);
}
