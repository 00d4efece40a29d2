#include "model/olmo_passes.h"

#include <limits>

#include <ATen/ATen.h>

#include "core/compute/libtorch.h"
#include "core/trace/op_trace.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"

using namespace olmo;
using namespace olmo::model;
using olmo::test::same_bits;

namespace {

using Words = std::vector<std::string>;

constexpr std::int64_t kLayers = 5;
const LossWeights kWeights{.scale = 1.0F / 38, .z_multiplier = 1e-3F};

Policy policy_of(MixedPrecision mixed = MixedPrecision::kNone) {
  Policy policy = resolve_policy("portable", "auto", 1);
  policy.mixed_precision = mixed;
  return policy;
}

ModelConfig plain() {
  auto config = test::tiny_config();
  config.n_layers = kLayers;
  return config;
}

/// Tied, untied with every kind of parameter, OLMo 2 and OLMo 3.
std::vector<ModelConfig> configs() {
  auto untied = plain();
  untied.weight_tying = false;
  untied.clip_qkv = 0.5;
  untied.layer_norm_with_affine = true;
  untied.bias_for_layer_norm = true;
  untied.activation_type = "relu";
  auto olmo2 = test::tiny_olmo2(), olmo3 = test::tiny_olmo3();
  olmo2.n_layers = olmo3.n_layers = kLayers;
  return {plain(), untied, olmo2, olmo3};
}

TokenBatch batch_of(std::int64_t batch) {
  const at::Tensor ids = (at::arange(batch * 19, at::kLong) * 7919).remainder(60).view({batch, 19});
  return {ids, next_token_labels(ids)};
}

/// Gives out each unit in memory that other units have had, holds at most the root and one other
/// unit, spoils what has been released or handed back, and gives gradients memory without zeros.
class HostileUnits : public Units {
 public:
  HostileUnits(const ModelConfig& config, const Policy& policy, UnitMap map, std::uint64_t seed)
      : Units(std::move(map)),
        config_(config),
        dtypes_(dtypes_of(config, policy.mixed_precision)),
        masters_(make_tensors(parameter_specs(config))),
        sums_(make_tensors(parameter_specs(config))) {
    init_parameters(policy, config, seed, masters_);
    std::int64_t largest = 0;
    for (std::size_t unit = 1; unit < this->map().size(); ++unit)
      largest = std::max(largest, size_of(unit));
    for (Held* held : {&root_, &other_}) {
      const std::int64_t size = held == &root_ ? size_of(UnitMap::kRoot) : largest;
      held->weight_memory = at::empty({size});
      held->gradient_memory = at::empty({size});
    }
  }

  const ModelTensors& acquire(std::size_t unit, Pass) override {
    calls.push_back("acquire " + std::to_string(unit));
    Held& held = held_of(unit);
    CHECK_FALSE(held.weights);
    const NamedTensors gathered = views(held.weight_memory, unit);
    copy_tensors(of_unit(masters_, unit), gathered);
    held.weights.emplace(config_, dtypes_, gathered);
    held.weights->update();
    return held.weights->tensors();
  }

  void release(std::size_t unit, Pass) override {
    calls.push_back("release " + std::to_string(unit));
    Held& held = held_of(unit);
    spoil(place_some(config_, views(held.weight_memory, unit)));
    spoil(held.weights->tensors());
    held.weights.reset();
  }

  const ModelTensors& gradients(std::size_t unit) override {
    calls.push_back("gradients " + std::to_string(unit));
    Held& held = held_of(unit);
    held.gradients = place_some(config_, views(held.gradient_memory, unit));
    spoil(held.gradients);
    return held.gradients;
  }

  void gradients_done(std::size_t unit) override {
    calls.push_back("done " + std::to_string(unit));
    Held& held = held_of(unit);
    copy_tensors(views(held.gradient_memory, unit), of_unit(sums_, unit));
    spoil(held.gradients);
  }

  [[nodiscard]] const NamedTensors& sums() const { return sums_; }

  Words calls;

 private:
  struct Held {
    at::Tensor weight_memory, gradient_memory;
    std::optional<ComputeWeights> weights;
    ModelTensors gradients;
  };

  Held& held_of(std::size_t unit) { return unit == UnitMap::kRoot ? root_ : other_; }

  std::int64_t size_of(std::size_t unit) const {
    std::int64_t size = 0;
    for (const auto& spec : map().specs(unit)) size += elements(spec);
    return size;
  }

  NamedTensors views(const at::Tensor& memory, std::size_t unit) const {
    NamedTensors tensors;
    std::int64_t begin = 0;
    for (const auto& spec : map().specs(unit)) {
      tensors.push_back({spec.name, memory.narrow(0, begin, elements(spec)).view(spec.shape)});
      begin += elements(spec);
    }
    return tensors;
  }

  NamedTensors of_unit(const NamedTensors& all, std::size_t unit) const {
    NamedTensors tensors;
    for (const auto& spec : map().specs(unit)) {
      for (const auto& each : all) {
        if (each.name == spec.name) tensors.push_back(each);
      }
    }
    return tensors;
  }

  static void spoil(const ModelTensors& tensors) {
    const auto fill = [](const at::Tensor& tensor) {
      if (tensor.defined()) tensor.fill_(std::numeric_limits<float>::quiet_NaN());
    };
    const auto fill_norm = [&](const NormTensors& norm) {
      fill(norm.weight);
      fill(norm.bias);
    };
    fill(tensors.wte);
    fill(tensors.head);
    fill_norm(tensors.ln_f);
    for (const auto& block : tensors.blocks) {
      for (const auto* matrix : {&block.att_proj, &block.attn_out, &block.ff_proj, &block.ff_out})
        fill(*matrix);
      for (const auto* norm : {&block.attn_norm, &block.ff_norm, &block.q_norm, &block.k_norm})
        fill_norm(*norm);
    }
  }

  ModelConfig config_;
  Dtypes dtypes_;
  NamedTensors masters_, sums_;
  Held root_, other_;
};

struct Result {
  LossSums sums;
  NamedTensors gradients;
  OpTrace trace;
};

/// Of a model with weights of its own.
Result held_result(const ModelConfig& config, const Policy& policy,
                   const std::optional<std::string>& checkpointing, const TokenBatch& batch) {
  Olmo model(config, policy, checkpointing);
  model.init_weights(5);
  Result result;
  result.gradients = model.make_gradients();
  result.sums = model.forward_backward(batch, kWeights, result.gradients, false, &result.trace);
  return result;
}

void check_same(const Result& expected, const LossSums& sums, const NamedTensors& gradients,
                const OpTrace& trace) {
  CHECK(expected.sums.ce_sum == sums.ce_sum);
  CHECK(expected.sums.z_sum == sums.z_sum);
  CHECK(expected.sums.labels == sums.labels);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    INFO(gradients[i].name);
    CHECK(same_bits(expected.gradients[i].tensor, gradients[i].tensor));
  }
  CHECK_FALSE(first_difference(expected.trace.digests(), trace.digests()));
}

/// A training pass over hostile units has the bits of one process, and so has a second one.
void check_training(const ModelConfig& config, const std::optional<std::string>& wrapping,
                    const std::optional<std::string>& checkpointing,
                    MixedPrecision mixed = MixedPrecision::kNone) {
  INFO(wrapping.value_or("no wrapping") + ", " + checkpointing.value_or("no checkpointing"));
  const Policy policy = policy_of(mixed);
  const TokenBatch batch = batch_of(2);
  const Result expected = held_result(config, policy, checkpointing, batch);
  HostileUnits units(config, policy, UnitMap(config, wrapping), 5);
  Olmo model(config, policy, units, checkpointing);
  for (int pass = 0; pass < 2; ++pass) {
    OpTrace trace;
    const LossSums sums =
        ops::sum_of(model.policy(), model.forward_backward(batch, kWeights, &trace));
    check_same(expected, sums, units.sums(), trace);
  }
}

/// What a call asks of the units.
template <class Call>
Words calls_of(HostileUnits& units, const Call& call) {
  units.calls.clear();
  call();
  return units.calls;
}

}  // namespace

TEST_CASE("a model uses no weight that it has given back, whatever is checkpointed", "[model]") {
  for (const auto& config : configs()) {
    check_training(config, "by_block", std::nullopt);
    for (const auto mode : {"whole_layer", "one_in_two", "two_in_three", "fine_grained"})
      check_training(config, "by_block", mode);
  }
}

TEST_CASE("wrapping changes no bit", "[model]") {
  for (const std::optional<std::string>& wrapping :
       {std::optional<std::string>(), std::optional<std::string>("one_in_two"),
        std::optional<std::string>("one_in_three")}) {
    for (const auto& config : configs()) check_training(config, wrapping, "fine_grained");
  }
  auto grouped = plain();
  grouped.n_layers = 6;
  grouped.block_group_size = 3;
  check_training(grouped, "by_block_group", "one_in_two");
}

TEST_CASE("weights that are rounded as they come give the bits of one process", "[model]") {
  for (const auto mixed : {MixedPrecision::kMixed, MixedPrecision::kAutocast}) {
    for (auto config : configs()) {
      if (config.layer_norm_type == "default" && config.norm_after) continue;
      check_training(config, "by_block", "whole_layer", mixed);
      config.weight_tying = !config.weight_tying;
      check_training(config, "one_in_two", std::nullopt, mixed);
    }
  }
}

TEST_CASE("an idle pass asks for what a pass with a micro-batch asks for, in its order",
          "[model]") {
  std::vector<std::optional<std::string>> modes(kActivationCheckpointing.begin(),
                                                kActivationCheckpointing.end());
  modes.emplace_back();
  for (std::size_t i = 0; i < modes.size(); ++i) {
    INFO(modes[i].value_or("no checkpointing"));
    auto config = plain();
    config.weight_tying = i % 2 == 0;
    HostileUnits units(config, policy_of(), UnitMap(config, "one_in_two"), 5);
    Olmo model(config, policy_of(), units, modes[i]);
    const Words busy = calls_of(units, [&] { model.forward_backward(batch_of(1), kWeights); });
    CHECK(std::ranges::count(busy, "acquire 1") == 2);  // forward, backward with what it recomputes
    CHECK(std::ranges::count(busy, "gradients 1") == 1);
    CHECK(calls_of(units, [&] { model.idle_training_pass(); }) == busy);
  }
}

TEST_CASE(
    "evaluations over units have the bits of one process, and its calls are those of an idle "
    "pass",
    "[model]") {
  const Policy policy = policy_of();
  for (const auto& config : configs()) {
    Olmo held(config, policy);
    held.init_weights(5);
    HostileUnits units(config, policy, UnitMap(config), 5);
    Olmo model(config, policy, units);
    const Words idle = calls_of(units, [&] { model.idle_evaluation_pass(); });
    const TokenBatch batch = batch_of(2);
    CHECK(calls_of(units, [&] {
            CHECK(model.forward(batch).ce_sum == held.forward(batch).ce_sum);
          }) == idle);
    CHECK(calls_of(units, [&] {
            CHECK(same_bits(model.logits(batch.ids_BL), held.logits(batch.ids_BL)));
          }) == idle);
    const TokenForest forest{.ids = {1, 2, 3}, .segments = {{-1, 0, 3, 0}}, .targets = {{2, 4}}};
    std::vector<TokenScore> scores(1), expected(1);
    held.score(forest, expected);
    CHECK(calls_of(units, [&] { model.score(forest, scores); }) == idle);
    CHECK(scores[0].log_prob == expected[0].log_prob);
    // Whoever has nothing to score keeps step with the others.
    CHECK(calls_of(units, [&] {
            model.score({.ids = {1}, .segments = {{-1, 0, 1, 0}}, .targets = {}}, {});
          }) == idle);
  }
}
