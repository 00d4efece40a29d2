#include "model/recomputation.h"

#include <ATen/ATen.h>

#include "core/compute/libtorch.h"
#include "core/error.h"
#include "core/trace/op_trace.h"
#include "model/olmo.h"
#include "model/pass.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"

using namespace olmo::model;
using olmo::Policy;
using olmo::test::same_bits;

namespace {

const Policy kPolicy = olmo::resolve_policy("portable", "auto", 1);
constexpr std::int64_t kLayers = 5;

/// Every buffer that some config keeps: clip with biased norms, QK-norm with shared key heads and
/// norms after, plain.
std::vector<ModelConfig> configs() {
  auto plain = olmo::test::tiny_config();
  plain.n_layers = kLayers;
  auto clipped = plain;
  clipped.clip_qkv = 0.5;
  clipped.layer_norm_with_affine = true;
  clipped.bias_for_layer_norm = true;
  auto shared_keys = plain;
  shared_keys.n_kv_heads = 2;
  shared_keys.clip_qkv = 0.3;
  shared_keys.attention_layer_norm = true;
  auto olmo2 = olmo::test::tiny_olmo2(), olmo3 = olmo::test::tiny_olmo3();
  olmo2.n_layers = olmo3.n_layers = kLayers;
  auto after = plain;
  after.norm_after = true;
  after.activation_type = "relu";
  clipped.activation_type = "gelu";
  return {plain, clipped, shared_keys, olmo2, olmo3, after};
}

struct Result {
  olmo::test::Pass pass;
  olmo::OpTrace trace;
};

Result pass_of(Olmo& model, std::int64_t batch, std::int64_t salt = 0) {
  const at::Tensor ids =
      (at::arange(batch * 19, at::kLong) * 7919 + salt).remainder(60).view({batch, 19});
  Result result;
  result.pass.gradients = model.make_gradients();
  result.pass.sums = model.forward_backward({ids, next_token_labels(ids)}, {0.1F, 1e-3F},
                                            result.pass.gradients, false, &result.trace);
  return result;
}

void check_same(const Result& a, const Result& b) {
  check_same_bits(a.pass, b.pass);
  REQUIRE(a.trace.digests().size() == b.trace.digests().size());
  CHECK_FALSE(olmo::first_difference(a.trace.digests(), b.trace.digests()));
}

std::string blocks_of(const std::optional<std::string>& mode) {
  std::string text;
  for (const Recomputed block : recomputed_blocks(mode, 9))
    text += block == Recomputed::kBlock ? 'B' : block == Recomputed::kAttention ? 'a' : '.';
  return text;
}

}  // namespace

TEST_CASE("each mode recomputes the blocks that OLMo's should_checkpoint_block names", "[model]") {
  CHECK(blocks_of("whole_layer") == "BBBBBBBBB");
  CHECK(blocks_of("one_in_two") == "B.B.B.B.B");
  CHECK(blocks_of("one_in_three") == "B..B..B..");
  CHECK(blocks_of("one_in_four") == "B...B...B");
  CHECK(blocks_of("one_in_eight") == "B.......B");
  CHECK(blocks_of("two_in_three") == ".BB.BB.BB");
  CHECK(blocks_of("three_in_four") == ".BBB.BBB.");
  CHECK(blocks_of("fine_grained") == "aaaaaaaaa");
  CHECK(blocks_of({}) == ".........");
}

TEST_CASE("a mode that OLMo does not have is refused with the modes that there are", "[model]") {
  try {
    (void)recomputed_blocks("half", 2);
    FAIL("no error");
  } catch (const olmo::Error& error) {
    CHECK(std::string(error.what()) ==
          "`activation_checkpointing` is `half`, expected one of whole_layer, one_in_two, "
          "one_in_three, one_in_four, one_in_eight, two_in_three, three_in_four, fine_grained");
  }
}

TEST_CASE("loss, gradients and trace have the same bits whatever is computed again", "[model]") {
  for (const auto& config : configs()) {
    Olmo kept(config, kPolicy);
    kept.init_weights(5);
    const auto reference = pass_of(kept, 3);
    for (const auto mode : kActivationCheckpointing) {
      INFO(mode);
      Olmo model(config, kPolicy, std::string(mode));
      model.init_weights(5);
      check_same(pass_of(model, 3), reference);
    }
  }
}

TEST_CASE("operations are counted that run again: not the last block's, not the block's output",
          "[model]") {
  auto config = olmo::test::tiny_config();
  config.n_layers = 6;
  const auto flops = [&](const std::optional<std::string>& mode) {
    return recomputed_flops_per_token(config, mode, 16);
  };
  const std::int64_t attention = 2 * 32 * 16, before_mlp = 2 * 32 * (96 + 32),
                     up_gate = 2 * 32 * 256, block = attention + before_mlp + up_gate;
  CHECK(flops({}) == 0);
  CHECK(flops("fine_grained") == 5 * attention);
  CHECK(flops("whole_layer") == 5 * block);
  CHECK(flops("one_in_three") == block);
  CHECK(flops("one_in_eight") == 0);
  config.norm_after = true;  // the MLP's output is read by its norm
  CHECK(flops("one_in_three") == block + up_gate / 2);
  config.activation_type = "gelu";  // as wide as what it reads
  CHECK(flops("one_in_three") == block + up_gate);
}

TEST_CASE("a model that recomputes repeats its pass, whatever ran between", "[model]") {
  for (const auto& config : configs()) {
    for (const auto* mode : {"whole_layer", "two_in_three", "fine_grained"}) {
      INFO(mode);
      Olmo model(config, kPolicy, mode);
      model.init_weights(5);
      const auto first = pass_of(model, 2);
      (void)pass_of(model, 4, 1);
      const at::Tensor ids = at::arange(40, at::kLong).view({2, 20});
      const auto evaluated = model.forward({ids, next_token_labels(ids)});
      Olmo kept(config, kPolicy);
      kept.init_weights(5);
      CHECK(evaluated.ce_sum == kept.forward({ids, next_token_labels(ids)}).ce_sum);
      check_same(pass_of(model, 2), first);
    }
  }
}
