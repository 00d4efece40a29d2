#include "ops/cross_entropy.h"

#include <ATen/ops/cat.h>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/error.h"
#include "ops/dispatch.h"
#include "ops/kernels/row_ops.h"
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
  require_fp32_or_bf16(op, "h", h_MD, {sizes.tokens, sizes.width});
  if (is_bf16(h_MD)) {
    require(op, "w", w_VD, {sizes.vocabulary, sizes.width}, at::kBFloat16);
  } else {
    require_fp32_or_bf16(op, "w", w_VD, {sizes.vocabulary, sizes.width});
  }
  return sizes;
}

Sizes check(const char* op, const HeadInput& input) {
  const Sizes sizes = check_product(op, input.h_MD, input.w_VD);
  require(op, "labels", input.labels_M, {sizes.tokens}, at::kLong);
  const auto labels = host_span<std::int64_t>(input.labels_M);
  for (std::size_t i = 0; i < labels.size(); ++i) {
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

std::int64_t chunk_of(std::int64_t wanted, std::int64_t tokens) {
  return std::max<std::int64_t>(1, std::min(wanted, tokens));
}

/// Grows the buffers where needed, for logits of `type`, and returns the tokens per chunk.
std::int64_t prepare(const Policy& policy, HeadWorkspace& workspace, const Sizes& sizes,
                     at::ScalarType type) {
  const auto chunk = chunk_of(
      workspace.chunk > 0 ? workspace.chunk : head_chunk(policy, sizes.vocabulary), sizes.tokens);
  const auto fits = [](const at::Tensor& t, std::int64_t n, at::ScalarType wanted) {
    return t.defined() && t.scalar_type() == wanted && t.numel() >= n;
  };
  if (!fits(workspace.logits, chunk * sizes.vocabulary, type))
    workspace.logits = new_tensor({chunk * sizes.vocabulary}, tensors_of(policy, type));
  return chunk;
}

/// The logits of a chunk of tokens: the start of the workspace's.
at::Tensor chunk_logits(const HeadWorkspace& workspace, const Sizes& sizes, std::int64_t count) {
  return workspace.logits.narrow(0, 0, count * sizes.vocabulary).view({count, sizes.vocabulary});
}

/// In double, ascending over the tokens that have a label; `values` as TokenLosses has them.
HeadLoss sum_tokens(std::span<const std::int64_t> labels, std::span<const float> values) {
  HeadLoss loss;
  const auto ce = values, lse = values.subspan(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kIgnoredLabel) continue;
    const float z = lse[i] * lse[i];
    loss.ce_sum += ce[i];
    loss.z_sum += z;
    ++loss.labels;
  }
  return loss;
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

/// The targets, with the places of their rows in chunks of `chunk` rows.
std::vector<LabelOfRow> rows_of_chunks(std::span<const TokenTarget> targets, std::int64_t chunk) {
  std::vector<LabelOfRow> rows;
  rows.reserve(targets.size());
  for (const auto& [row, label] : targets) rows.push_back({row % chunk, label});
  return rows;
}

/// Of each row of `logits`: its maximum, and log(sum) of exp(x - maximum).
template <class Element>
void sum_logits(const Context& context, const at::Tensor& logits, const at::Tensor& maxima_M,
                const at::Tensor& log_sums_M) {
  const auto rows = logits.size(0), columns = logits.size(1);
  const auto* values = kernel_input<Element>(logits);
  auto* maxima = kernel_output<float>(maxima_M);
  auto* log_sums = kernel_output<float>(log_sums_M);
  if (on_gpu(context, "head_scores", {logits, maxima_M, log_sums_M})) {
    launch(context, gpu_kernels::kLogSums<Element>, blocks_of_rows(rows), values, rows, columns,
           maxima, log_sums);
    return;
  }
  const auto& kernels = loss_kernels_for(context.policy.isa).of<Element>();
  parallel_for(0, rows, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
    kernels.log_sums(values, columns, maxima, log_sums, begin, end);
  });
}

/// Scores the labels from number `first` on, `count` of them.
template <class Element>
void score_labels(const Context& context, const at::Tensor& logits, const at::Tensor& maxima_M,
                  const at::Tensor& log_sums_M, const at::Tensor& labels, const at::Tensor& scores,
                  std::int64_t first, std::int64_t count) {
  const ScoredRows<Element> rows{
      .logits = kernel_input<Element>(logits),
      .columns = logits.size(1),
      .maxima = kernel_input<float>(maxima_M),
      .log_sums = kernel_input<float>(log_sums_M),
      .labels = kernel_array<LabelOfRow>(labels) + first,
      .scores = reinterpret_cast<LabelScore*>(kernel_output<std::uint8_t>(scores)) + first};
  if (on_gpu(context, "head_scores", {logits, maxima_M, log_sums_M, labels, scores})) {
    launch(context, gpu_kernels::kScoreLabels<Element>, blocks_of_rows(count), rows, count);
    return;
  }
  const auto& kernels = loss_kernels_for(context.policy.isa).of<Element>();
  parallel_for(0, count, row_grain(logits.size(1)), [&](std::int64_t begin, std::int64_t end) {
    kernels.score_labels(rows, begin, end);
  });
}

/// What the loss kernel is told of the chunk of tokens from `first` on.
template <class Element>
LossRows<Element> loss_rows(const at::Tensor& logits, const at::Tensor& labels_M,
                            const HeadGradients* gradients, const HeadTokenValues& tokens,
                            const at::Tensor& ce_M, const at::Tensor& lse_M, std::int64_t first) {
  return {.logits = kernel_output<Element>(logits),
          .columns = logits.size(1),
          .labels = kernel_input<std::int64_t>(labels_M) + first,
          .ce = kernel_output<float>(ce_M) + first,
          .lse = kernel_output<float>(lse_M) + first,
          .argmax = tokens.argmax_M.defined() ? kernel_output<std::int64_t>(tokens.argmax_M) + first
                                              : nullptr,
          .gradient = gradients != nullptr,
          .grad_scale = gradients != nullptr ? gradients->grad_scale : 0.0F,
          .z_multiplier = gradients != nullptr ? gradients->z_multiplier : 0.0F};
}

/// Both entry points: `gradients` is null for the loss alone.
TokenLosses run(const char* op, const Context& context, HeadWorkspace& workspace,
                const HeadInput& input, const HeadGradients* gradients,
                const HeadTokenValues& tokens) {
  const auto sizes = check(op, input);
  check_tokens(op, tokens, sizes.tokens);
  if (gradients != nullptr) {
    require(op, "dh", gradients->dh_MD, {sizes.tokens, sizes.width}, fp32_or_bf16(input.h_MD));
    require(op, "dw", gradients->dw_VD, {sizes.vocabulary, sizes.width});
  }
  const auto chunk = prepare(context.policy, workspace, sizes, fp32_or_bf16(input.h_MD));
  const at::Tensor values = new_tensor({2, sizes.tokens}, tensors_of(context.policy, at::kFloat));
  const at::Tensor ce_M = values[0], lse_M = values[1];
  const at::Tensor labels_M = to_device(context.policy, input.labels_M);
  const Context product = context.named({});
  if (gradients != nullptr && !gradients->accumulate && sizes.tokens == 0) gradients->dw_VD.zero_();
  for (std::int64_t first = 0; first < sizes.tokens; first += chunk) {
    const auto count = std::min(chunk, sizes.tokens - first);
    at::Tensor logits = chunk_logits(workspace, sizes, count);
    const at::Tensor h = input.h_MD.narrow(0, first, count);
    linear(product, h, input.w_VD, logits);
    for_element_type(logits, [&]<class Element>() {
      const auto rows = loss_rows<Element>(logits, labels_M, gradients, tokens, ce_M, lse_M, first);
      if (on_gpu(context, op, {logits, values, labels_M, tokens.argmax_M})) {
        launch(context, gpu_kernels::kLossRows<Element>, blocks_of_rows(count), rows, count);
        return;
      }
      const auto& kernels = loss_kernels_for(context.policy.isa).of<Element>();
      parallel_for(
          0, count, row_grain(sizes.vocabulary),
          [&](std::int64_t begin, std::int64_t end) { kernels.loss_rows(rows, begin, end); });
    });
    if (gradients == nullptr) continue;
    at::Tensor dh = gradients->dh_MD.narrow(0, first, count);
    at::Tensor dw = gradients->dw_VD;
    linear_backward_input(product, logits, input.w_VD, dh);
    const bool last = first + count == sizes.tokens;
    linear_backward_weight(product, logits, h, dw, gradients->accumulate || first > 0,
                           last ? gradients->rounding : Rounding::kNone);
  }
  if (tokens.ce_M.defined()) tokens.ce_M.copy_(ce_M);
  if (tokens.lse_M.defined()) tokens.lse_M.copy_(lse_M);
  context.traced(ce_M, "/ce_loss");
  context.traced(lse_M, "/log_sum_exp");
  if (gradients != nullptr) {
    context.traced(gradients->dh_MD, "/grad");
    context.traced(gradients->dw_VD, "/weight.grad");
  }
  return {values, input.labels_M};
}

}  // namespace

std::vector<HeadLoss> sums_of(const Policy& policy, std::span<const TokenLosses> calls) {
  std::vector<at::Tensor> values;
  for (const TokenLosses& call : calls) values.push_back(call.values.view({-1}));
  if (values.empty()) return {};
  const at::Tensor all = to_host(policy, values.size() == 1 ? values.front() : at::cat(values));
  auto rest = host_span<float>(all);
  std::vector<HeadLoss> sums;
  for (const TokenLosses& call : calls) {
    const auto labels = host_span<std::int64_t>(call.labels_M);
    sums.push_back(sum_tokens(labels, rest));
    rest = rest.subspan(2 * labels.size());
  }
  return sums;
}

HeadLoss sum_of(const Policy& policy, const TokenLosses& call) {
  return sums_of(policy, std::span(&call, 1)).front();
}

std::int64_t head_chunk(const Policy& policy, std::int64_t vocabulary) {
  constexpr std::int64_t kUnit = 64;
  // The larger, the fewer gradients of the weights are added to others, which a CPU does in fp32.
  const bool large = policy.device != Device::kCpu || policy.has_bf16_products();
  const std::int64_t logits = std::int64_t{large ? 208 : 26} << 20;
  return std::max(kUnit, logits / std::max<std::int64_t>(1, vocabulary) / kUnit * kUnit);
}

std::int64_t head_workspace_bytes(const Policy& policy, std::int64_t tokens,
                                  std::int64_t vocabulary, at::ScalarType logits) {
  const auto chunk = chunk_of(head_chunk(policy, vocabulary), tokens);
  return chunk * vocabulary * static_cast<std::int64_t>(c10::elementSize(logits));
}

HeadLoss head_loss(const Context& context, HeadWorkspace& workspace, const HeadInput& input,
                   const HeadTokenValues& tokens) {
  return sum_of(context.policy, run("head_loss", context, workspace, input, nullptr, tokens));
}

void head_scores(const Context& context, HeadWorkspace& workspace, const at::Tensor& h_RD,
                 const at::Tensor& w_VD, std::span<const TokenTarget> targets,
                 std::span<TokenScore> scores) {
  const auto sizes = check_product("head_scores", h_RD, w_VD);
  check_targets(sizes, targets);
  OLMO_CHECK(scores.size() == targets.size());
  if (targets.empty()) return;
  const auto chunk = prepare(context.policy, workspace, sizes, fp32_or_bf16(h_RD));
  const at::TensorOptions fp32 = tensors_of(context.policy, at::kFloat);
  const at::Tensor maxima_M = new_tensor({chunk}, fp32), log_sums_M = new_tensor({chunk}, fp32);
  const auto places = rows_of_chunks(targets, chunk);
  const at::Tensor labels = device_copy(context, std::as_bytes(std::span(places)));
  const auto bytes = std::ssize(targets) * static_cast<std::int64_t>(sizeof(LabelScore));
  const at::Tensor found = new_tensor({bytes}, tensors_of(context.policy, at::kByte));
  std::int64_t done = 0;
  for (std::int64_t first = 0; first < sizes.tokens; first += chunk) {
    const auto count = std::min(chunk, sizes.tokens - first);
    at::Tensor logits = chunk_logits(workspace, sizes, count);
    linear(context.named({}), h_RD.narrow(0, first, count), w_VD, logits);
    const auto begin = done;
    while (done < std::ssize(targets) &&
           targets[static_cast<std::size_t>(done)].row < first + count)
      ++done;
    for_element_type(logits, [&]<class Element>() {
      sum_logits<Element>(context, logits, maxima_M, log_sums_M);
      score_labels<Element>(context, logits, maxima_M, log_sums_M, labels, found, begin,
                            done - begin);
    });
  }
  const at::Tensor on_host = to_host(context.policy, found);
  const auto* score = kernel_array<LabelScore>(on_host);
  for (TokenScore& each : scores) {
    each = {score->log_prob, score->logit, score->is_likeliest != 0};
    ++score;
  }
}

TokenLosses head_loss_backward(const Context& context, HeadWorkspace& workspace,
                               const HeadInput& input, const HeadGradients& gradients,
                               const HeadTokenValues& tokens) {
  return run("head_loss_backward", context, workspace, input, &gradients, tokens);
}

}  // namespace olmo::ops
