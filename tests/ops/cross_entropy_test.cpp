#include "ops/cross_entropy.h"

#include <limits>

#include <ATen/ATen.h>

#include "core/compute/libtorch.h"
#include "core/error.h"
#include "ops/bf16_golden.h"
#include "ops/linear.h"
#include "ops/row_reference.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::ops;
namespace ref = olmo::ops::reference;

namespace {

constexpr float kScale = 0.037F;
constexpr float kZ = 1e-3F;

struct Result {
  HeadLoss loss;
  at::Tensor ce, lse, argmax, dh, dw;
};

HeadInput example(std::int64_t tokens, std::int64_t vocabulary, std::int64_t width,
                  at::ScalarType type = at::kFloat) {
  HeadInput input{ref::values({tokens, width}, 201, 2.0F).to(type),
                  ref::values({vocabulary, width}, 202).to(type),
                  ref::integers(tokens, vocabulary, 203)};
  for (std::int64_t i = 4; i < tokens; i += 5) input.labels_M[i] = kIgnoredLabel;
  return input;
}

bool is_bf16(const HeadInput& input) { return input.h_MD.scalar_type() == at::kBFloat16; }

at::Tensor initial_dw(const HeadInput& input) { return ref::values(input.w_VD.sizes(), 204); }

Result run(const Policy& policy, const HeadInput& input, std::int64_t chunk) {
  HeadWorkspace workspace;
  workspace.chunk = chunk;
  const auto tokens = input.h_MD.size(0);
  Result r{{},
           at::empty({tokens}),
           at::empty({tokens}),
           at::empty({tokens}, at::kLong),
           at::empty_like(input.h_MD),
           initial_dw(input)};
  const HeadGradients gradients{.grad_scale = kScale,
                                .z_multiplier = kZ,
                                .dh_MD = r.dh,
                                .dw_VD = r.dw,
                                .rounding = is_bf16(input) ? Rounding::kBf16 : Rounding::kNone};
  r.loss = sum_of(policy,
                  head_loss_backward(policy, workspace, input, gradients, {r.ce, r.lse, r.argmax}));
  return r;
}

float scalar_log(float x) { return ref::apply(ops::log, at::full({1}, x)).item<float>(); }

/// The definition, one element at a time.
Result scalar(const HeadInput& input) {
  const bool narrow = is_bf16(input);
  const auto stored = [&](float x) { return narrow ? static_cast<float>(at::BFloat16(x)) : x; };
  const auto tokens = input.h_MD.size(0), vocabulary = input.w_VD.size(0),
             width = input.h_MD.size(1);
  Result r{{},
           at::zeros({tokens}),
           at::zeros({tokens}),
           at::zeros({tokens}, at::kLong),
           at::zeros(input.h_MD.sizes()),
           initial_dw(input)};
  const at::Tensor h_fp32 = input.h_MD.to(at::kFloat), w_fp32 = input.w_VD.to(at::kFloat);
  const auto* h = h_fp32.const_data_ptr<float>();
  const auto* w = w_fp32.const_data_ptr<float>();
  for (std::int64_t m = 0; m < tokens; ++m) {
    at::Tensor row = at::zeros({vocabulary});
    auto* x = row.data_ptr<float>();
    for (std::int64_t v = 0; v < vocabulary; ++v) {
      for (std::int64_t d = 0; d < width; ++d)
        x[v] = std::fma(h[m * width + d], w[v * width + d], x[v]);
      x[v] = stored(x[v]);
    }
    const float* best = std::max_element(x, x + vocabulary);
    const float max = *best;
    r.argmax[m] = best - x;
    const auto label = input.labels_M.const_data_ptr<std::int64_t>()[m];
    const float shifted = label < 0 ? 0.0F : x[label] - max;
    const at::Tensor terms = ref::apply(ops::exp, row - max);
    const auto* e = terms.const_data_ptr<float>();
    const float sum = ref::row_sum(e, vocabulary);
    const float lse = max + scalar_log(sum);
    r.lse[m] = lse;
    if (label < 0) continue;
    const float ce = scalar_log(sum) - shifted;
    r.ce[m] = ce;
    r.loss.ce_sum += ce;
    r.loss.z_sum += lse * lse;
    ++r.loss.labels;
    const float factor = kScale * std::fma(2.0F * kZ, lse, 1.0F) / sum;
    auto* dh = r.dh.data_ptr<float>() + m * width;
    auto* dw = r.dw.data_ptr<float>();
    for (std::int64_t v = 0; v < vocabulary; ++v) {
      const float g = stored(v == label ? std::fma(e[v], factor, -kScale) : e[v] * factor);
      for (std::int64_t d = 0; d < width; ++d) {
        dh[d] = std::fma(g, w[v * width + d], dh[d]);
        dw[v * width + d] = std::fma(g, h[m * width + d], dw[v * width + d]);
      }
    }
  }
  if (narrow) {
    r.dh = r.dh.to(at::kBFloat16);
    r.dw = r.dw.to(at::kBFloat16).to(at::kFloat);
  }
  return r;
}

void check_same(const Result& a, const Result& b) {
  CHECK(a.loss.ce_sum == b.loss.ce_sum);
  CHECK(a.loss.z_sum == b.loss.z_sum);
  CHECK(a.loss.labels == b.loss.labels);
  CHECK(ref::same_bits(a.ce, b.ce));
  CHECK(ref::same_bits(a.lse, b.lse));
  CHECK(a.argmax.equal(b.argmax));
  CHECK(a.dh.scalar_type() == b.dh.scalar_type());
  CHECK(ref::same_bits(a.dh.to(at::kFloat), b.dh.to(at::kFloat)));
  CHECK(ref::same_bits(a.dw, b.dw));
}

}  // namespace

TEST_CASE(
    "the head's loss and gradients have the bits of their definition whatever the chunk, threads "
    "and instruction set",
    "[ops]") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t vocabulary : {1, 83, 1030}) {
      const auto input = example(vocabulary == 1030 ? 97 : 11, vocabulary, 12, type);
      const auto expected = scalar(input);
      ref::for_each_policy([&](const Policy& policy) {
        for (const std::int64_t chunk : {0, 1, 7, 64}) {
          INFO(to_string(policy.isa) << " threads " << policy.threads << " chunk " << chunk
                                     << " vocabulary " << vocabulary << " " << at::toString(type));
          check_same(run(policy, input, chunk), expected);
        }
      });
    }
  }
}

TEST_CASE(
    "the loss of bf16 logits and their gradient are the reference's, with no more error than "
    "LibTorch's",
    "[ops]") {
  const ref::Bf16Golden golden;
  const at::Tensor ids = golden.in("loss.ids"), logits = golden.in("loss.logits").view({160, 384});
  HeadInput input{logits, at::eye(384).to(at::kBFloat16),
                  at::full({2, 80}, kIgnoredLabel, at::kLong)};
  input.labels_M.narrow(1, 0, 79).copy_(ids.narrow(1, 1, 79));
  input.labels_M = input.labels_M.view({160});
  // With the identity as weight the logits are h, and dh is their gradient.
  const at::Tensor ce = at::empty({160}), lse = at::empty({160}), dlogits = at::empty_like(logits);
  const HeadGradients gradients{.grad_scale = 1.0F / 160,
                                .z_multiplier = 1e-4F,
                                .dh_MD = dlogits,
                                .dw_VD = at::zeros({384, 384}),
                                .rounding = Rounding::kBf16};
  HeadWorkspace workspace;
  const Policy policy = ref::plain_policy();
  const auto loss =
      sum_of(policy, head_loss_backward(policy, workspace, input, gradients, {ce, lse, {}}));
  const auto labelled = [](const at::Tensor& t) {
    return t.view({2, 80}).narrow(1, 0, 79).reshape({158});
  };
  const auto check = [&](const char* name, const at::Tensor& found, const at::Tensor& exact) {
    golden.check(name, found.view_as(golden.out(name)));
    golden.check_error(name, found, exact);
  };
  const at::Tensor x = logits.to(at::kDouble).requires_grad_(true);
  const at::Tensor exact_ce =
      at::cross_entropy_loss(x, input.labels_M, {}, at::Reduction::None, kIgnoredLabel);
  const at::Tensor exact_z =
      1e-4 * x.logsumexp(1).square() * input.labels_M.ne(kIgnoredLabel).to(at::kDouble);
  ((exact_ce + exact_z).sum() / 160).backward();
  check("loss.ce_per_token", labelled(ce), labelled(exact_ce.detach()));
  check("loss.z_per_token", labelled(lse.square() * 1e-4), labelled(exact_z.detach()));
  check("loss.ce_sum_over_n", at::full({}, loss.ce_sum / 160).to(at::kFloat),
        exact_ce.detach().sum() / 160);
  check("loss.z_sum_over_n", at::full({}, loss.z_sum * 1e-4 / 160).to(at::kFloat),
        exact_z.detach().sum() / 160);
  check("loss.d_logits_fused", dlogits, x.grad());
}

TEST_CASE("the head with fast products agrees with the portable one within rounding", "[ops]") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto input = example(60, 500, 40, type);
    const auto expected = run(resolve_policy("portable", "auto", 2), input, 16);
    INFO(at::toString(type));
    for (const Policy& fast : ref::fast_policies(2)) {
      apply_policy(fast);
      const auto found = run(fast, input, 16);
      apply_policy(ref::plain_policy());
      // In bf16 a few logits round to a neighbour, 2^-8 away, and so do their gradients.
      const bool bf16 = type == at::kBFloat16;
      CHECK(found.loss.ce_sum == Approx(expected.loss.ce_sum).epsilon(bf16 ? 1e-4 : 1e-6));
      CHECK(found.loss.z_sum == Approx(expected.loss.z_sum).epsilon(bf16 ? 1e-4 : 1e-6));
      CHECK(ref::relative_rms(found.dh, expected.dh) <= (bf16 ? 1e-3 : 1e-6));
      CHECK(ref::relative_rms(found.dw, expected.dw) <= (bf16 ? 1e-3 : 1e-6));
    }
  }
}

TEST_CASE("the head's gradient is set, or continued from what is stored", "[ops]") {
  const Policy policy = ref::plain_policy();
  for (const std::int64_t tokens : {0, 37}) {
    const auto input = example(tokens, 50, 24);
    auto dh = at::empty_like(input.h_MD);
    const auto gradient = [&](float stored, bool accumulate) {
      HeadWorkspace workspace;
      workspace.chunk = 16;
      auto dw = at::full({50, 24}, stored);
      const HeadGradients gradients{.dh_MD = dh, .dw_VD = dw, .accumulate = accumulate};
      head_loss_backward(policy, workspace, input, gradients);
      return dw;
    };
    CHECK(ref::same_bits(gradient(NAN, false), gradient(0, true)));
    CHECK_FALSE(ref::same_bits(gradient(0, false), gradient(1, true)));
  }
}

TEST_CASE("a chunk of the head is larger where a CPU multiplies bf16, and not in fp32", "[ops]") {
  constexpr std::int64_t kVocabulary = 50304;
  Policy policy = ref::plain_policy();
  policy.numerics = Numerics::kFast;
  policy.multiplies_bf16 = true;
  CHECK(head_chunk(policy, kVocabulary) == 512);
  policy.mixed_precision = MixedPrecision::kMixed;
  CHECK(head_chunk(policy, kVocabulary) > 4000);
  policy.multiplies_bf16 = false;
  CHECK(head_chunk(policy, kVocabulary) == 512);
}

TEST_CASE("a chunk of the head has rows for all of a GPU", "[ops]") {
  constexpr std::int64_t kVocabulary = 50304, kBytesOfLogit = 2;
  Policy policy = ref::plain_policy();
  CHECK(head_chunk(policy, kVocabulary) == 512);
  policy.device = Device::kCuda;
  // Sixteen threads have a row: 132 multiprocessors then have 16 warps each.
  CHECK(head_chunk(policy, kVocabulary) >= 132 * 32);
  CHECK(head_workspace_bytes(policy, 16384, kVocabulary, at::kBFloat16) ==
        head_chunk(policy, kVocabulary) * kVocabulary * kBytesOfLogit);
}

TEST_CASE("the head takes bf16 where both its factors are, and gives gradients of h's type",
          "[ops]") {
  const auto fp32 = example(6, 40, 8), bf16 = example(6, 40, 8, at::kBFloat16);
  HeadWorkspace workspace;
  const auto loss = [&](const at::Tensor& h, const at::Tensor& w) {
    return head_loss(ref::plain_policy(), workspace, {h, w, fp32.labels_M});
  };
  CHECK_NOTHROW(loss(bf16.h_MD, bf16.w_VD));
  CHECK(workspace.logits.scalar_type() == at::kBFloat16);
  CHECK(static_cast<std::int64_t>(workspace.logits.nbytes()) ==
        head_workspace_bytes(ref::plain_policy(), 6, 40, at::kBFloat16));
  CHECK_NOTHROW(loss(fp32.h_MD, bf16.w_VD));  // in fp32, with weights that are stored in bf16
  CHECK(workspace.logits.scalar_type() == at::kFloat);
  CHECK_THROWS_AS(loss(bf16.h_MD, fp32.w_VD), Error);
  CHECK_THROWS_AS(head_loss_backward(ref::plain_policy(), workspace, bf16,
                                     {.dh_MD = at::empty({6, 8}), .dw_VD = at::zeros({40, 8})}),
                  Error);
}

TEST_CASE("the head's loss alone equals the loss with gradients", "[ops]") {
  const auto input = example(30, 500, 16, GENERATE(at::kFloat, at::kBFloat16));
  const auto expected = run(ref::plain_policy(), input, 0);
  HeadWorkspace workspace;
  workspace.chunk = 8;
  at::Tensor ce = at::empty({30}), lse = at::empty({30});
  const auto loss = head_loss(ref::plain_policy(), workspace, input, {ce, lse, {}});
  CHECK(loss.ce_sum == expected.loss.ce_sum);
  CHECK(loss.z_sum == expected.loss.z_sum);
  CHECK(loss.labels == 24);
  CHECK(ref::same_bits(ce, expected.ce));
  CHECK(ref::same_bits(lse, expected.lse));
}

TEST_CASE("the head agrees with LibTorch's cross-entropy and autograd in double within 2e-6",
          "[ops]") {
  const auto input = example(40, 900, 24);
  const at::Tensor h = input.h_MD.to(at::kDouble).requires_grad_(true),
                   w = input.w_VD.to(at::kDouble).requires_grad_(true);
  const at::Tensor logits = h.matmul(w.t());
  const at::Tensor ce =
      at::cross_entropy_loss(logits, input.labels_M, {}, at::Reduction::Sum, kIgnoredLabel);
  const at::Tensor z = (logits.logsumexp(1).square() * (input.labels_M != kIgnoredLabel)).sum();
  (static_cast<double>(kScale) * (ce + static_cast<double>(kZ) * z)).backward();
  const auto r = run(ref::plain_policy(), input, 16);
  CHECK(r.loss.ce_sum == Approx(ce.item<double>()).epsilon(1e-6));
  CHECK(r.loss.z_sum == Approx(z.item<double>()).epsilon(1e-6));
  CHECK(ref::distance(r.dh, h.grad()) < 2e-6);
  CHECK(ref::distance(r.dw, w.grad() + initial_dw(input).to(at::kDouble)) < 2e-6);
  CHECK(r.argmax.equal(logits.argmax(1)));
}

TEST_CASE("a token's loss does not depend on the tokens beside it", "[ops]") {
  const auto input = example(20, 300, 16, GENERATE(at::kFloat, at::kBFloat16));
  const auto whole = run(ref::plain_policy(), input, 0);
  const HeadInput part{input.h_MD.narrow(0, 6, 5), input.w_VD, input.labels_M.narrow(0, 6, 5)};
  const auto alone = run(ref::plain_policy(), part, 0);
  CHECK(ref::same_bits(alone.ce, whole.ce.narrow(0, 6, 5)));
  CHECK(ref::same_bits(alone.dh, whole.dh.narrow(0, 6, 5)));
}

TEST_CASE("a row's scores are those of the loss, whatever the labels beside it and the chunk",
          "[ops]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  auto input = example(40, 83, 12, type);
  input.w_VD[17] = input.w_VD[5];  // equal logits: the first is the likeliest
  input.h_MD[3] = input.w_VD[5] * 10;
  std::vector<TokenTarget> targets;
  for (std::int64_t row = 0; row < 40; ++row) {
    for (const std::int64_t label : {row, std::int64_t{5}, std::int64_t{17}})
      targets.push_back({row, label});
  }
  at::Tensor logits = at::empty({40, 83}, type);
  linear(ref::plain_policy(), input.h_MD, input.w_VD, logits);
  logits = logits.to(at::kFloat);
  std::vector<Result> expected;  // the labels one after the other
  for (std::size_t i = 0; i < 3; ++i) {
    HeadInput one = input;
    one.labels_M = at::empty({40}, at::kLong);
    for (std::size_t row = 0; row < 40; ++row)
      one.labels_M.data_ptr<std::int64_t>()[row] = targets[3 * row + i].label;
    expected.push_back(run(ref::plain_policy(), one, 0));
  }
  ref::for_each_policy([&](const Policy& policy) {
    for (const std::int64_t chunk : {0, 1, 7}) {
      HeadWorkspace workspace;
      workspace.chunk = chunk;
      std::vector<TokenScore> scores(targets.size());
      head_scores(policy, workspace, input.h_MD, input.w_VD, targets, scores);
      for (std::size_t i = 0; i < targets.size(); ++i) {
        const auto [row, label] = targets[i];
        const Result& loss = expected[i % 3];
        CHECK(scores[i].log_prob == -loss.ce[row].item<float>());
        CHECK(scores[i].logit == logits[row][label].item<float>());
        CHECK(scores[i].is_likeliest == (loss.argmax[row].item<std::int64_t>() == label));
      }
      CHECK(scores[3 * 3 + 1].is_likeliest);
      CHECK(!scores[3 * 3 + 2].is_likeliest);
    }
  });
}

TEST_CASE("scores refuse targets that skip rows, and labels beyond the vocabulary", "[ops]") {
  const auto input = example(3, 9, 4);
  HeadWorkspace workspace;
  const auto score = [&](const std::vector<TokenTarget>& targets) {
    std::vector<TokenScore> scores(targets.size());
    head_scores(ref::plain_policy(), workspace, input.h_MD, input.w_VD, targets, scores);
  };
  CHECK_NOTHROW(score({{0, 1}, {1, 2}, {1, 8}, {2, 0}}));
  CHECK_THROWS_AS(score({{0, 1}, {2, 2}}), Error);
  CHECK_THROWS_AS(score({{0, 1}, {1, 2}}), Error);
  CHECK_THROWS_AS(score({{0, 1}, {1, 2}, {2, 9}}), Error);
  CHECK_THROWS_AS(score({{0, 1}, {1, -100}, {2, 8}}), Error);
  CHECK_THROWS_AS(score({}), Error);
}

TEST_CASE("large logits neither overflow nor lose the loss", "[ops]") {
  auto input = example(6, 40, 8, GENERATE(at::kFloat, at::kBFloat16));
  input.h_MD.mul_(1e4);
  const auto r = run(ref::plain_policy(), input, 0);
  CHECK(std::isfinite(r.loss.ce_sum));
  CHECK(r.dh.isfinite().all().item<bool>());
}

TEST_CASE("a value that is not finite reaches the loss as NaN and disturbs no other token",
          "[ops]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto input = example(6, 40, 8, type);
    input.h_MD[2][3] = bad;
    const auto r = run(ref::plain_policy(), input, 0);
    CHECK(std::isnan(r.loss.ce_sum));
    CHECK(std::isnan(r.ce[2].item<float>()));
    CHECK(std::isfinite(r.ce[1].item<float>()));
    CHECK(r.dh[1].isfinite().all().item<bool>());
  }
}

TEST_CASE("all tokens ignored, or none at all, give a loss of 0 and no gradient", "[ops]") {
  auto input = example(6, 40, 8);
  input.labels_M.fill_(kIgnoredLabel);
  const auto r = run(ref::plain_policy(), input, 4);
  CHECK(r.loss.ce_sum == 0.0);
  CHECK(r.loss.labels == 0);
  CHECK(r.dh.eq(0).all().item<bool>());
  CHECK(ref::same_bits(r.dw, initial_dw(input)));
  const auto none = run(ref::plain_policy(), example(0, 40, 8), 0);
  CHECK(none.loss.labels == 0);
}

TEST_CASE("a label beyond the vocabulary is an input error that names its position", "[ops]") {
  for (const std::int64_t bad : {-1, -101, 40, 1 << 30}) {
    auto input = example(6, 40, 8);
    input.labels_M[3] = bad;
    HeadWorkspace workspace;
    try {
      head_loss(ref::plain_policy(), workspace, input);
      FAIL("accepted " << bad);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kInput);
      CHECK(std::string(error.what()).find("position 3") != std::string::npos);
    }
  }
}

TEST_CASE("a workspace serves larger and smaller calls with the same results", "[ops]") {
  HeadWorkspace workspace;
  const auto small = example(5, 40, 8), large = example(50, 400, 16);
  const auto first = head_loss(ref::plain_policy(), workspace, small).ce_sum;
  const auto second = head_loss(ref::plain_policy(), workspace, large).ce_sum;
  const auto* buffer = workspace.logits.const_data_ptr<float>();
  CHECK(head_loss(ref::plain_policy(), workspace, small).ce_sum == first);
  CHECK(head_loss(ref::plain_policy(), workspace, large).ce_sum == second);
  CHECK(workspace.logits.const_data_ptr<float>() == buffer);
}
