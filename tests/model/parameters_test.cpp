#include "model/parameters.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "core/compute/libtorch.h"
#include "core/compute/random.h"
#include "core/error.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"

using olmo::NamedTensors;
using olmo::model::Buffer;
using olmo::model::init_rule;
using olmo::model::ModelConfig;
using olmo::model::parameter_specs;
using olmo::model::ParameterRole;
using olmo::model::ParameterSpec;

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

TEST_CASE("a buffer gives every shape that fits out of the same memory", "[model]") {
  Buffer buffer;
  const at::Tensor large = buffer.shaped({4, 6});
  const at::Tensor small = buffer.shaped({3, 2, 2});
  CHECK(small.data_ptr() == large.data_ptr());
  CHECK(small.sizes() == at::IntArrayRef({3, 2, 2}));
  CHECK(buffer.get().is_same(small));
  CHECK(buffer.shaped({4, 6}).data_ptr() == large.data_ptr());
}

TEST_CASE("a buffer grows for a larger shape and keeps its type", "[model]") {
  Buffer buffer(at::kByte);
  (void)buffer.shaped({2});
  const at::Tensor grown = buffer.shaped({3 << 20, 2});
  CHECK(grown.scalar_type() == at::kByte);
  CHECK(grown.numel() == 6 << 20);
  grown.fill_(7);
  CHECK(grown.eq(7).all().item<bool>());
}

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

TEST_CASE("initial values of a part of a parameter are those of the whole, wherever it is cut",
          "[model]") {
  auto config = olmo::test::tiny_config();
  config.layer_norm_with_affine = true;
  config.bias_for_layer_norm = true;
  const auto specs = parameter_specs(config);
  const auto whole = initialised(config, 5);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    INFO(specs[i].name);
    const auto values = olmo::host_span<float>(whole[i].tensor);
    const auto size = static_cast<std::int64_t>(values.size());
    std::vector<float> drawn(values.size());
    // Cuts that no vector of lanes divides, the empty part among them.
    for (const std::int64_t cut : {std::int64_t{0}, std::int64_t{1}, size / 3 + 1, size - 5}) {
      const auto middle = static_cast<std::size_t>(cut);
      olmo::model::init_part(kPolicy, config, 5, specs[i], 0, std::span(drawn).first(middle));
      olmo::model::init_part(kPolicy, config, 5, specs[i], cut, std::span(drawn).subspan(middle));
      CHECK(std::ranges::equal(drawn, values));
    }
  }
}

TEST_CASE("tensors of some parameters are placed, and the other places stay empty", "[model]") {
  const auto config = olmo::test::tiny_config();
  const auto tensors = numbered(config);
  const auto places = olmo::model::place_some(config, {tensors[0], tensors[8]});
  CHECK(places.head.is_same(tensors[0].tensor));
  CHECK(places.blocks[1].ff_proj.is_same(tensors[8].tensor));
  CHECK_FALSE(places.blocks[0].ff_proj.defined());
  CHECK_THROWS_AS(olmo::model::place_some(config, {tensors[8], tensors[0]}), olmo::Error);
}
