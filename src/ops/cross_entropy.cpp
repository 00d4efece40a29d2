#include "ops/cross_entropy.h"

#include <cmath>

#include <ATen/Parallel.h>

#include "core/error.h"
#include "ops/arguments.h"
#include "ops/gpu/launch.h"
#include "ops/isa_table.h"
#include "ops/kernels/loss.h"
#include "ops/linear.h"

namespace olmo::ops {

OLMO_ISA_TABLE(LossKernels, loss_kernels)

namespace {

struct Sizes {
  std::int64_t tokens, vocabulary, width;
};

Sizes check_product(const char* op, const at::Tensor& h_MD, const at::Tensor& w_VD) {
  require_matrix(op, "h", h_MD);
  require_matrix(op, "w", w_VD);
  const Sizes sizes{h_MD.size(0), w_VD.size(0), h_MD.size(1)};
  require(op, "h", h_MD, {sizes.tokens, sizes.width});
  require_fp32_or_bf16(op, "w", w_VD, {sizes.vocabulary, sizes.width});
  return sizes;
}

Sizes check(const char* op, const HeadInput& input) {
  const Sizes sizes = check_product(op, input.h_MD, input.w_VD);
  require(op, "labels", input.labels_M, {sizes.tokens}, at::kLong);
  const auto* labels = input.labels_M.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < sizes.tokens; ++i) {
    if (labels[i] == kIgnoredLabel || (labels[i] >= 0 && labels[i] < sizes.vocabulary)) continue;
    throw Error(ErrorKind::kInput,
                std::string(op) + ": the label at position " + std::to_string(i) +
                    " must lie in 0.." + std::to_string(sizes.vocabulary - 1) + " or be " +
                    std::to_string(kIgnoredLabel) + ", got " + std::to_string(labels[i]));
  }
  return sizes;
}

void check_tokens(const char* op, const HeadTokenValues& tokens, std::int64_t count) {
  if (tokens.ce_M.defined()) require(op, "ce", tokens.ce_M, {count});
  if (tokens.lse_M.defined()) require(op, "lse", tokens.lse_M, {count});
  if (tokens.argmax_M.defined()) require(op, "argmax", tokens.argmax_M, {count}, at::kLong);
}

/// Grows the buffers where needed and returns the tokens per chunk.
std::int64_t prepare(HeadWorkspace& workspace, const Sizes& sizes) {
  constexpr std::int64_t kLogits = 26 * 1024 * 1024;
  const auto wanted =
      workspace.chunk > 0
          ? workspace.chunk
          : std::max<std::int64_t>(64,
                                   kLogits / std::max<std::int64_t>(1, sizes.vocabulary) / 64 * 64);
  const auto chunk = std::max<std::int64_t>(1, std::min(wanted, sizes.tokens));
  const auto fits = [](const at::Tensor& t, std::int64_t n) {
    return t.defined() && t.numel() >= n;
  };
  if (!fits(workspace.logits, chunk * sizes.vocabulary))
    workspace.logits = at::empty({chunk * sizes.vocabulary}, at::kFloat);
  if (!fits(workspace.values, 2 * sizes.tokens))
    workspace.values = at::empty({2 * sizes.tokens}, at::kFloat);
  return chunk;
}

/// In double, ascending over the tokens that have a label.
HeadLoss sum_tokens(const HeadInput& input, const float* ce, const float* lse) {
  HeadLoss loss;
  const auto* labels = input.labels_M.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < input.labels_M.numel(); ++i) {
    if (labels[i] == kIgnoredLabel) continue;
    const float z = lse[i] * lse[i];
    loss.ce_sum += ce[i];
    loss.z_sum += z;
    ++loss.labels;
  }
  return loss;
}

void copy_tokens(const HeadTokenValues& tokens, const float* ce, const float* lse,
                 std::int64_t count) {
  if (tokens.ce_M.defined()) std::copy_n(ce, count, tokens.ce_M.data_ptr<float>());
  if (tokens.lse_M.defined()) std::copy_n(lse, count, tokens.lse_M.data_ptr<float>());
}

void check_targets(const Sizes& sizes, std::span<const TokenTarget> targets) {
  std::int64_t row = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    OLMO_CHECK(targets[i].row == row || (i > 0 && targets[i].row == row + 1));
    row = targets[i].row;
    if (targets[i].label >= 0 && targets[i].label < sizes.vocabulary) continue;
    throw Error(ErrorKind::kInput, "head_scores: the label of target " + std::to_string(i) +
                                       " must lie in 0.." + std::to_string(sizes.vocabulary - 1) +
                                       ", got " + std::to_string(targets[i].label));
  }
  OLMO_CHECK(targets.empty() ? sizes.tokens == 0 : row + 1 == sizes.tokens);
}

TokenScore score_of(std::span<const float> logits, std::int64_t label, float top, float log_sum) {
  const float logit = logits[static_cast<std::size_t>(label)];
  const float ce = log_sum - (logit - top);
  const auto earlier = logits.first(static_cast<std::size_t>(label));
  const auto is_nan = [](float x) { return std::isnan(x); };
  const bool likeliest =
      logit == top && std::find(earlier.begin(), earlier.end(), top) == earlier.end() &&
      !(std::isnan(log_sum) && std::any_of(logits.begin(), logits.end(), is_nan));
  return {.log_prob = -ce, .logit = logit, .is_likeliest = likeliest};
}

/// Both entry points: `gradients` is null for the loss alone.
HeadLoss run(const char* op, const Context& context, HeadWorkspace& workspace,
             const HeadInput& input, const HeadGradients* gradients,
             const HeadTokenValues& tokens) {
  const auto sizes = check(op, input);
  check_tokens(op, tokens, sizes.tokens);
  if (gradients != nullptr) {
    require(op, "dh", gradients->dh_MD, {sizes.tokens, sizes.width});
    require(op, "dw", gradients->dw_VD, {sizes.vocabulary, sizes.width});
  }
  const auto chunk = prepare(workspace, sizes);
  const Context inner = context.named({});
  const auto& kernels = loss_kernels_for(context.policy.isa);
  auto* ce = workspace.values.data_ptr<float>();
  auto* lse = ce + sizes.tokens;
  for (std::int64_t first = 0; first < sizes.tokens; first += chunk) {
    const auto count = std::min(chunk, sizes.tokens - first);
    at::Tensor logits =
        workspace.logits.narrow(0, 0, count * sizes.vocabulary).view({count, sizes.vocabulary});
    const at::Tensor h = input.h_MD.narrow(0, first, count);
    linear(inner, h, input.w_VD, logits);
    const LossRows rows{.logits = logits.data_ptr<float>(),
                        .columns = sizes.vocabulary,
                        .labels = input.labels_M.const_data_ptr<std::int64_t>() + first,
                        .ce = ce + first,
                        .lse = lse + first,
                        .argmax = tokens.argmax_M.defined()
                                      ? tokens.argmax_M.data_ptr<std::int64_t>() + first
                                      : nullptr,
                        .gradient = gradients != nullptr,
                        .grad_scale = gradients != nullptr ? gradients->grad_scale : 0.0F,
                        .z_multiplier = gradients != nullptr ? gradients->z_multiplier : 0.0F};
    if (on_gpu(context, op, {logits, workspace.values, input.labels_M, tokens.argmax_M})) {
      launch(context, gpu_kernels::kLossRows, blocks_of_rows(count), rows, count);
    } else {
      at::parallel_for(
          0, count, row_grain(sizes.vocabulary),
          [&](std::int64_t begin, std::int64_t end) { kernels.loss_rows(rows, begin, end); });
    }
    if (gradients == nullptr) continue;
    at::Tensor dh = gradients->dh_MD.narrow(0, first, count);
    at::Tensor dw = gradients->dw_VD;
    linear_backward_input(inner, logits, input.w_VD, dh);
    linear_backward_weight(inner, logits, h, dw, /*accumulate=*/true);
  }
  copy_tokens(tokens, ce, lse, sizes.tokens);
  if (context.trace != nullptr) {
    context.traced(workspace.values.narrow(0, 0, sizes.tokens), "/ce_loss");
    context.traced(workspace.values.narrow(0, sizes.tokens, sizes.tokens), "/log_sum_exp");
  }
  if (gradients != nullptr) {
    context.traced(gradients->dh_MD, "/grad");
    context.traced(gradients->dw_VD, "/weight.grad");
  }
  return sum_tokens(input, ce, lse);
}

}  // namespace

HeadLoss head_loss(const Context& context, HeadWorkspace& workspace, const HeadInput& input,
                   const HeadTokenValues& tokens) {
  return run("head_loss", context, workspace, input, nullptr, tokens);
}

void head_scores(const Context& context, HeadWorkspace& workspace, const at::Tensor& h_RD,
                 const at::Tensor& w_VD, std::span<const TokenTarget> targets,
                 std::span<TokenScore> scores) {
  const auto sizes = check_product("head_scores", h_RD, w_VD);
  check_targets(sizes, targets);
  OLMO_CHECK(scores.size() == targets.size());
  const auto chunk = prepare(workspace, sizes);
  const auto& kernels = loss_kernels_for(context.policy.isa);
  auto* maxima = workspace.values.data_ptr<float>();
  auto* log_sums = maxima + sizes.tokens;
  std::size_t done = 0;
  for (std::int64_t first = 0; first < sizes.tokens; first += chunk) {
    const auto count = std::min(chunk, sizes.tokens - first);
    at::Tensor logits =
        workspace.logits.narrow(0, 0, count * sizes.vocabulary).view({count, sizes.vocabulary});
    linear(context.named({}), h_RD.narrow(0, first, count), w_VD, logits);
    const float* values = logits.const_data_ptr<float>();
    if (on_gpu(context, "head_scores", {logits, workspace.values})) {
      launch(context, gpu_kernels::kLogSums, blocks_of_rows(count), values, count, sizes.vocabulary,
             maxima, log_sums);
    } else {
      at::parallel_for(0, count, row_grain(sizes.vocabulary),
                       [&](std::int64_t begin, std::int64_t end) {
                         kernels.log_sums(values, sizes.vocabulary, maxima, log_sums, begin, end);
                       });
    }
    for (; done < targets.size() && targets[done].row < first + count; ++done) {
      const auto row = targets[done].row - first;
      const std::span row_logits(values + row * sizes.vocabulary,
                                 static_cast<std::size_t>(sizes.vocabulary));
      scores[done] = score_of(row_logits, targets[done].label, maxima[row], log_sums[row]);
    }
  }
}

HeadLoss head_loss_backward(const Context& context, HeadWorkspace& workspace,
                            const HeadInput& input, const HeadGradients& gradients,
                            const HeadTokenValues& tokens) {
  return run("head_loss_backward", context, workspace, input, &gradients, tokens);
}

}  // namespace olmo::ops
