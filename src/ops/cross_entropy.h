#pragma once

#include <span>
#include <vector>

#include "core/compute/tensor.h"
#include "core/evaluation_rows.h"
#include "ops/context.h"

namespace olmo::ops {

/// A label that takes no part in the loss, as in PyTorch and OLMo.
inline constexpr int64_t kIgnoredLabel = -100;

/// Sums over the tokens that have a label. Per token, in fp32: ce = log(sum) - (x[label] - max) and
/// lse = max + log(sum), with max and sum = row_sum(exp(x - max)) over all V columns (padding
/// columns of the vocabulary take part, as in OLMo). The tokens' values are added in double in
/// ascending order.
struct HeadLoss {
  double ce_sum = 0;
  double z_sum = 0;  ///< Σ lse², without the z-loss multiplier
  std::int64_t labels = 0;
};

/// The losses of a call's tokens, which a device may still be computing.
struct TokenLosses {
  at::Tensor values;    ///< fp32 (2, M): ce and lse, in the memory that the call worked in
  at::Tensor labels_M;  ///< of the host
};

/// What each of the calls came to. A device has ended their work then: of many calls it is waited
/// for once.
std::vector<HeadLoss> sums_of(const Policy& policy, std::span<const TokenLosses> calls);
HeadLoss sum_of(const Policy& policy, const TokenLosses& call);

/// Buffers of the head, kept by the caller from step to step (fresh pages are expensive); they grow
/// on first use. head_workspace_bytes() says how large they become.
struct HeadWorkspace {
  at::Tensor logits;       ///< of one chunk of tokens, then their gradient
  std::int64_t chunk = 0;  ///< tokens per chunk; 0: head_chunk()
};

/// Tokens of a chunk unless the caller says otherwise: about 26 Mi logits, which stay near a CPU;
/// or 208 Mi, since sixteen threads of a GPU share a row, and thousands of rows occupy all of it.
/// Every chunk reads and writes the whole gradient of the head's weight.
std::int64_t head_chunk(const Policy& policy, std::int64_t vocabulary);

/// Bytes of a HeadWorkspace that serves `tokens` tokens at a time, with logits in fp32 or bf16; and
/// of a token's TokenLosses.
std::int64_t head_workspace_bytes(const Policy& policy, std::int64_t tokens,
                                  std::int64_t vocabulary, at::ScalarType logits = at::kFloat);
inline constexpr std::int64_t kTokenLossBytes = 2 * sizeof(float);

/// Optional outputs per token; an undefined tensor is not written. A token without label has ce 0.
struct HeadTokenValues {
  at::Tensor ce_M;   ///< fp32, -log p(label)
  at::Tensor lse_M;  ///< fp32, log-sum-exp of the logits
  at::Tensor
      argmax_M;  ///< int64, first column that holds the row's maximum; -1 if the row holds a NaN
};

/// What the head multiplies and compares: logits = h · wᵀ, contiguous, labels int64. Where h and w
/// are bf16, so are the logits, each rounded once, and so is their gradient: everything between the
/// two is fp32. Else the logits are fp32.
struct HeadInput {
  at::Tensor h_MD;      ///< fp32, or bf16 where w is
  at::Tensor w_VD;      ///< fp32 or bf16
  at::Tensor labels_M;  ///< 0..V-1, or kIgnoredLabel
};

/// Loss only; never holds the logits of more than a chunk of tokens. The chunk does not change a
/// bit of any result. Throws Error(kInput) naming the position of a label out of range. Values that
/// are not finite pass through to the sums.
HeadLoss head_loss(const Context& context, HeadWorkspace& workspace, const HeadInput& input,
                   const HeadTokenValues& tokens = {});

/// Fills scores[i] with what row targets[i].row of the logits h · wᵀ says of targets[i].label:
/// log_prob = -ce and the argmax as head_loss defines them, the logit as it is. Rows are ascending,
/// without gaps, from 0; types as HeadInput's. Throws Error(kInput) for a label out of range.
void head_scores(const Context& context, HeadWorkspace& workspace, const at::Tensor& h_RD,
                 const at::Tensor& w_VD, std::span<const TokenTarget> targets,
                 std::span<TokenScore> scores);

/// Gradients for the loss grad_scale · (ce_sum + z_multiplier · z_sum).
struct HeadGradients {
  float grad_scale = 1;
  float z_multiplier = 0;  ///< 0: no z-loss (OLMo's softmax_auxiliary_loss)
  at::Tensor dh_MD;        ///< set; of h's type
  at::Tensor dw_VD;        ///< fp32
  bool accumulate = true;  ///< dw is continued from the stored value, else set; tokens ascend
  Rounding rounding = Rounding::kNone;  ///< of dw, once all tokens are in it
};

/// head_loss and its gradients: dlogits = grad_scale · ((1 + 2 · z_multiplier · lse) · p - onehot),
/// in fp32, rounded once where the logits are bf16; then dh = dlogits · w and dw = or += dlogitsᵀ ·
/// h. Rows without label have dlogits 0.
TokenLosses head_loss_backward(const Context& context, HeadWorkspace& workspace,
                               const HeadInput& input, const HeadGradients& gradients,
                               const HeadTokenValues& tokens = {});

}  // namespace olmo::ops
