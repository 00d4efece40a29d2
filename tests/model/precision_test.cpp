#include "model/precision.h"

#include <bit>

#include "core/compute/named_tensors.h"
#include "model/memory.h"
#include "model/olmo.h"
#include "model/thirds.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::model;

namespace {

ModelConfig small(bool tied) {
  ModelConfig config;
  config.d_model = 8;
  config.n_heads = 2;
  config.n_layers = 1;
  config.vocab_size = 10;
  config.embedding_size = std::nullopt;
  config.weight_tying = tied;
  config.eos_token_id = config.pad_token_id = 1;
  return config;
}

bool is_bf16(const at::Tensor& tensor) { return tensor.scalar_type() == at::kBFloat16; }

}  // namespace

TEST_CASE("in fp32 a network computes with its parameters themselves", "[model]") {
  const auto config = small(true);
  const auto parameters = thirds(config);
  const ComputeWeights weights(config, dtypes_of(config, MixedPrecision::kNone), parameters);
  CHECK(weights.bytes() == 0);
  CHECK(weights.tensors().wte.is_same(parameters[0].tensor));
}

TEST_CASE("mixed computes with bf16 copies of all parameters, and one of a tied table", "[model]") {
  const auto config = small(true);
  const ComputeWeights weights(config, dtypes_of(config, MixedPrecision::kMixed), thirds(config));
  weights.update();
  const ModelTensors& tensors = weights.tensors();
  CHECK(is_bf16(tensors.wte));
  CHECK(tensors.head.is_same(tensors.wte));
  CHECK(is_bf16(tensors.ln_f.weight));
  CHECK(is_bf16(tensors.blocks[0].ff_proj));
  CHECK(weights.bytes() == 2 * count_parameters(config).total);
  CHECK(weights.bytes() == plan_working_weights(config, MixedPrecision::kMixed));
  CHECK(static_cast<float>(host_span<c10::BFloat16>(tensors.wte).front()) == 0.333984375F);
}

TEST_CASE("autocast looks tokens up in fp32, multiplies in bf16 and keeps norms in fp32",
          "[model]") {
  const auto config = small(true);
  const auto parameters = thirds(config);
  const ComputeWeights weights(config, dtypes_of(config, MixedPrecision::kAutocast), parameters);
  const ModelTensors& tensors = weights.tensors();
  CHECK(tensors.wte.is_same(parameters[0].tensor));
  CHECK(is_bf16(tensors.head));
  CHECK_FALSE(is_bf16(tensors.ln_f.weight));
  CHECK(weights.bytes() == plan_working_weights(config, MixedPrecision::kAutocast));
  CHECK(is_bf16(tensors.blocks[0].att_proj));
}

TEST_CASE("the weights of a unit are rounded by themselves", "[model]") {
  auto config = small(true);
  config.n_layers = 2;
  const NamedTensors all = thirds(config);
  NamedTensors second;
  for (const auto& each : all) {
    if (each.name.find("blocks.1.") != std::string::npos) second.push_back(each);
  }
  const ComputeWeights weights(config, dtypes_of(config, MixedPrecision::kAutocast), second);
  weights.update();
  const ModelTensors& tensors = weights.tensors();
  CHECK(is_bf16(tensors.blocks[1].att_proj));
  CHECK(static_cast<float>(host_span<c10::BFloat16>(tensors.blocks[1].ff_out).front()) ==
        0.333984375F);
  CHECK_FALSE(tensors.wte.defined());
  CHECK_FALSE(tensors.head.defined());
  CHECK_FALSE(tensors.blocks[0].att_proj.defined());
}

TEST_CASE("weights that arrive rounded are not copied", "[model]") {
  const auto config = small(true);
  const NamedTensors rounded = make_tensors(parameter_specs(config), at::kBFloat16);
  const ComputeWeights weights(config, dtypes_of(config, MixedPrecision::kMixed), rounded);
  CHECK(weights.bytes() == 0);
  CHECK(weights.tensors().wte.is_same(rounded[0].tensor));
  CHECK(weights.tensors().head.is_same(rounded[0].tensor));
}

TEST_CASE("copies follow the parameters when they are updated", "[model]") {
  const auto config = small(false);
  const auto parameters = thirds(config);
  const ComputeWeights weights(config, dtypes_of(config, MixedPrecision::kMixed), parameters);
  weights.update();
  for (const auto& [name, tensor] : parameters) tensor.fill_(2.0);
  CHECK(static_cast<float>(host_span<c10::BFloat16>(weights.tensors().head).front()) != 2.0F);
  weights.update();
  CHECK(static_cast<float>(host_span<c10::BFloat16>(weights.tensors().head).front()) == 2.0F);
}

TEST_CASE("which tensors are bf16 follows from the variant and the kind of norm", "[model]") {
  auto config = small(false);
  const auto mixed = dtypes_of(config, MixedPrecision::kMixed);
  CHECK(mixed.stream == at::kBFloat16);
  CHECK(mixed.embedding == at::kBFloat16);
  const auto autocast = dtypes_of(config, MixedPrecision::kAutocast);
  CHECK(autocast.stream == at::kFloat);
  CHECK(autocast.product == at::kBFloat16);
  CHECK(autocast.term == at::kFloat);
  CHECK(autocast.norm == at::kFloat);
  CHECK_FALSE(autocast.norm_rounds_input);
  config.layer_norm_type = "low_precision";
  const auto low = dtypes_of(config, MixedPrecision::kAutocast);
  CHECK(low.stream == at::kFloat);
  CHECK(low.term == at::kBFloat16);
  CHECK(low.norm == at::kBFloat16);
  CHECK(low.norm_rounds_input);
  CHECK_FALSE(dtypes_of(config, MixedPrecision::kMixed).norm_rounds_input);  // the stream is bf16
}

TEST_CASE("a micro-batch's gradients have values of bf16 where the weights used are bf16",
          "[model]") {
  for (const bool tied : {true, false}) {
    const auto config = small(tied);
    const at::Tensor ids = new_tensor({2, 9}, at::kLong);
    std::int64_t next = 0;
    for (auto& id : mutable_host_span<std::int64_t>(ids)) id = 7 * next++ % 10;
    for (const auto mixed : {MixedPrecision::kMixed, MixedPrecision::kAutocast}) {
      Policy policy;
      policy.mixed_precision = mixed;
      Olmo model(config, policy);
      model.init_weights(1);
      const auto gradients = model.make_gradients();
      model.forward_backward({ids, next_token_labels(ids)}, {1.0F / 18, 1e-4F}, gradients,
                             /*accumulate=*/false);
      const Dtypes dtypes = dtypes_of(config, mixed);
      const auto specs = parameter_specs(config);
      for (std::size_t i = 0; i < specs.size(); ++i) {
        INFO(to_string(mixed) << ", " << (tied ? "tied" : "untied") << ", " << specs[i].name);
        const auto values = host_span<float>(gradients[i].tensor);
        const bool rounded = std::ranges::all_of(values, [](float value) {
          return (std::bit_cast<std::uint32_t>(value) & 0xFFFFU) == 0;
        });
        CHECK(rounded == (dtypes.of(specs[i].role) == at::kBFloat16));
      }
    }
  }
}
