#include "model/olmo.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "core/compute/libtorch.h"
#include "core/error.h"
#include "model/pass.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"

using olmo::Isa;
using olmo::NamedTensors;
using olmo::Policy;
using olmo::model::LossWeights;
using olmo::model::ModelConfig;
using olmo::model::next_token_labels;
using olmo::model::Olmo;
using olmo::model::TokenBatch;
using olmo::test::check_same_bits;
using olmo::test::Pass;
using olmo::test::same_bits;

namespace {

const Policy kPolicy = olmo::resolve_policy("portable", "auto", 0);
const LossWeights kWeights{.scale = 1.0F / 64, .z_multiplier = 1e-3F};

std::vector<ModelConfig> configs() {
  auto plain = olmo::test::tiny_config();
  auto clipped = plain;
  clipped.clip_qkv = 0.5;
  clipped.weight_tying = false;
  clipped.layer_norm_with_affine = true;
  clipped.bias_for_layer_norm = true;
  clipped.activation_type = "gelu";
  return {plain, clipped, olmo::test::tiny_olmo2(), olmo::test::tiny_olmo3()};
}

Olmo model_of(const ModelConfig& config, const Policy& policy = kPolicy) {
  Olmo model(config, policy);
  model.init_weights(5);
  return model;
}

TokenBatch batch_of(std::int64_t batch, std::int64_t length, std::int64_t salt = 0) {
  const at::Tensor ids = (at::arange(batch * length, at::kLong) * 7919 + salt * 31)
                             .remainder(60)
                             .view({batch, length});
  return {ids, next_token_labels(ids)};
}

TokenBatch rows_of(const TokenBatch& batch, std::int64_t first, std::int64_t count) {
  return {batch.ids_BL.narrow(0, first, count).contiguous(),
          batch.labels_BL.narrow(0, first, count).contiguous()};
}

Pass run(Olmo& model, const TokenBatch& batch) {
  Pass result;
  result.gradients = model.make_gradients();
  result.sums = model.forward_backward(batch, kWeights, result.gradients, false);
  return result;
}

}  // namespace

TEST_CASE("labels are the next tokens, none after the last", "[model]") {
  const at::Tensor ids = at::arange(6, at::kLong).view({2, 3});
  const at::Tensor expected = at::tensor({1, 2, -100, 4, 5, -100}, at::kLong).view({2, 3});
  CHECK(next_token_labels(ids).equal(expected));
  CHECK(next_token_labels(at::zeros({2, 1}, at::kLong)).eq(-100).all().item<bool>());
}

TEST_CASE("loss and gradients have the same bits on every instruction set and thread count",
          "[model]") {
  for (const auto& config : configs()) {
    const auto batch = batch_of(3, 21);
    Olmo reference_model = model_of(config);
    const auto reference = run(reference_model, batch);
    for (const Isa isa : {Isa::kPlain, Isa::kAvx2, Isa::kAvx512}) {
      if (isa > olmo::best_isa()) continue;
      for (const int threads : {1, 2, 3}) {
        INFO(olmo::to_string(isa) << ", " << threads << " threads");
        Policy policy = kPolicy;
        policy.isa = isa;
        policy.threads = threads;
        policy.operations_a_thread = 1;  // so that all threads have a share
        olmo::apply_policy(policy);
        Olmo model = model_of(config, policy);
        check_same_bits(run(model, batch), reference);
      }
    }
    olmo::apply_policy(kPolicy);
  }
}

TEST_CASE("a second pass over the same batch repeats the first, whatever ran between", "[model]") {
  for (const auto& config : configs()) {
    Olmo model = model_of(config);
    const auto batch = batch_of(2, 17);
    const auto first = run(model, batch);
    (void)run(model, batch_of(4, 30, 1));
    (void)model.forward(batch_of(1, 5, 2));
    (void)model.logits(batch_of(5, 31, 3).ids_BL);
    check_same_bits(run(model, batch), first);
  }
}

TEST_CASE("the forward-only loss is the training loss, bit for bit", "[model]") {
  for (const auto& config : configs()) {
    Olmo model = model_of(config);
    const auto batch = batch_of(3, 20);
    const auto trained = run(model, batch).sums;
    const auto evaluated = model.forward(batch);
    CHECK(evaluated.ce_sum == trained.ce_sum);
    CHECK(evaluated.z_sum == trained.z_sum);
    CHECK(evaluated.labels == 3 * 19);
  }
}

TEST_CASE("a sequence alone has the logits that it has in a batch, and no later token changes them",
          "[model]") {
  for (const auto& config : configs()) {
    Olmo model = model_of(config);
    const at::Tensor ids = batch_of(3, 20).ids_BL;
    const at::Tensor together = model.logits(ids);
    CHECK(same_bits(model.logits(ids.narrow(0, 1, 1).contiguous()), together.narrow(0, 1, 1)));
    CHECK(same_bits(model.logits(ids.narrow(1, 0, 11).contiguous()), together.narrow(1, 0, 11)));
  }
}

TEST_CASE("accumulated micro-batches give the gradient of the sum", "[model]") {
  for (const auto& config : configs()) {
    Olmo model = model_of(config);
    const auto batch = batch_of(4, 16);
    const auto whole = run(model, batch);
    const NamedTensors gradients = model.make_gradients();
    const NamedTensors separate = model.make_gradients();
    std::vector<at::Tensor> sums;
    for (std::int64_t row = 0; row < 4; ++row) {
      model.forward_backward(rows_of(batch, row, 1), kWeights, gradients, row > 0);
      model.forward_backward(rows_of(batch, row, 1), kWeights, separate, false);
      for (std::size_t i = 0; i < separate.size(); ++i) {
        if (row == 0)
          sums.push_back(separate[i].tensor.to(at::kDouble));
        else
          sums[i] += separate[i].tensor;
      }
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      INFO(gradients[i].name);
      const double scale = whole.gradients[i].tensor.abs().max().item<double>();
      CHECK(olmo::test::max_abs_difference(gradients[i].tensor, whole.gradients[i].tensor) <
            2e-6 * scale);
      CHECK(olmo::test::max_abs_difference(sums[i], whole.gradients[i].tensor) < 2e-6 * scale);
    }
  }
}

TEST_CASE(
    "the linear layers' gradient chains continue over micro-batches: any cut gives the same bits",
    "[model]") {
  Olmo model = model_of(olmo::test::tiny_config());
  const auto batch = batch_of(4, 16);
  const auto whole = run(model, batch);
  const NamedTensors gradients = model.make_gradients();
  model.forward_backward(rows_of(batch, 0, 1), kWeights, gradients, false);
  model.forward_backward(rows_of(batch, 1, 3), kWeights, gradients, true);
  for (std::size_t i = 1; i < gradients.size();
       ++i) {  // 0 is the tied embedding, which two chains feed
    INFO(gradients[i].name);
    CHECK(same_bits(gradients[i].tensor, whole.gradients[i].tensor));
  }
}

TEST_CASE("rows of tokens that never occur get a gradient from the head only", "[model]") {
  auto config = olmo::test::tiny_config();
  config.weight_tying = false;
  Olmo model = model_of(config);
  const at::Tensor ids = at::full({2, 9}, 7, at::kLong);
  const auto gradients = run(model, {ids, next_token_labels(ids)}).gradients;
  const at::Tensor row_sums = gradients.front().tensor.abs().sum(1);
  CHECK(row_sums[7].item<double>() > 0.0);
  CHECK(row_sums.sum().item<double>() == row_sums[7].item<double>());
  CHECK(gradients.back().tensor.abs().sum(1).gt(0.0).all().item<bool>());
}

TEST_CASE("labels that are ignored take no part", "[model]") {
  Olmo model = model_of(olmo::test::tiny_config());
  auto batch = batch_of(2, 12);
  batch.labels_BL.fill_(olmo::model::kIgnoredLabel);
  const auto result = run(model, batch);
  CHECK(result.sums.labels == 0);
  CHECK(result.sums.ce_sum == 0.0);
  for (const auto& [name, gradient] : result.gradients) CHECK(gradient.eq(0.0).all().item<bool>());
}

TEST_CASE("observers see the embedding, every block and the last norm", "[model]") {
  Olmo model = model_of(olmo::test::tiny_config());
  std::vector<std::string> points;
  model.forward(batch_of(2, 6), [&](std::string_view point, const at::Tensor& x) {
    points.emplace_back(point);
    CHECK(x.sizes() == at::IntArrayRef({12, 32}));
  });
  CHECK(points == std::vector<std::string>{"embedding", "block_0", "block_1", "ln_f"});
}

TEST_CASE("token ids and labels outside of the embedding are input errors", "[model]") {
  Olmo model = model_of(olmo::test::tiny_config());
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{64}, INT64_MAX}) {
    auto batch = batch_of(1, 8);
    batch.ids_BL[0][3] = bad;
    CHECK_THROWS_AS(model.forward(batch), olmo::Error);
    batch = batch_of(1, 8);
    batch.labels_BL[0][3] = bad;
    CHECK_THROWS_AS(model.forward(batch), olmo::Error);
  }
}

TEST_CASE("an impossible config makes no model", "[model]") {
  auto config = olmo::test::tiny_config();
  config.n_heads = 7;
  CHECK_THROWS_AS(Olmo(config, kPolicy), olmo::Error);
}
