// The kernels of kernels.cu by name, with the types of their parameters: the host's side. A test
// holds the two files together.
#pragma once

#include <cstdint>

#include "ops/kernels/attention.h"
#include "ops/kernels/forest_tables.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/pointwise.h"
#include "ops/kernels/row_ops.h"
#include "ops/kernels/tensor_list.h"

namespace olmo::ops {

template <class... Parameters>
struct GpuKernel {
  const char* name;
};

namespace gpu_kernels {

using Index = std::int64_t;

/// The name of the kernel for tensors of float, or of Bf16.
template <class Element>
constexpr const char* name_for(const char* fp32, const char* bf16) {
  return sizeof(Element) == sizeof(Bf16) ? bf16 : fp32;
}

inline constexpr GpuKernel<const float*, float*, Index> kExp{"olmo_exp"}, kLog{"olmo_log"},
    kSigmoid{"olmo_sigmoid"};
inline constexpr GpuKernel<const float*, const float*, float*, Index> kAdd{"olmo_add"};
inline constexpr GpuKernel<const Bf16*, const Bf16*, Bf16*, Index> kAddBf16{"olmo_add_bf16"};
inline constexpr GpuKernel<const float*, const Bf16*, float*, Index> kAddWidened{
    "olmo_add_widened"};
template <class Element>
inline constexpr GpuKernel<Element*, float, Index> kScale{
    name_for<Element>("olmo_scale", "olmo_scale_bf16")};
inline constexpr GpuKernel<float*, Index> kRoundToBf16{"olmo_round_to_bf16"};
template <class Element>
inline constexpr GpuKernel<Element*, float, std::uint8_t*, Index> kClamp{
    name_for<Element>("olmo_clamp", "olmo_clamp_bf16")};
template <class Element>
inline constexpr GpuKernel<const std::uint8_t*, Element*, Index> kMask{
    name_for<Element>("olmo_mask", "olmo_mask_bf16")};
template <class Element>
inline constexpr GpuKernel<const Element*, Element*, Index, Index> kSwiglu{
    name_for<Element>("olmo_swiglu", "olmo_swiglu_bf16")};
template <class Element>
inline constexpr GpuKernel<const Element*, const Element*, Element*, Element*, Index, Index>
    kSwigluBackward{name_for<Element>("olmo_swiglu_backward", "olmo_swiglu_backward_bf16")};
template <class Element>
inline constexpr GpuKernel<Activation, const Element*, Element*, Index> kActivation{
    name_for<Element>("olmo_activation", "olmo_activation_bf16")};
template <class Element>
inline constexpr GpuKernel<Activation, const Element*, const Element*, Element*, Element*, Index>
    kActivationBackward{
        name_for<Element>("olmo_activation_backward", "olmo_activation_backward_bf16")};
template <class Element>
inline constexpr GpuKernel<RopeArgs<Element>, float, Index> kRope{
    name_for<Element>("olmo_rope", "olmo_rope_bf16")};
inline constexpr GpuKernel<NormForwardArgs, Index> kLayerNorm{"olmo_layer_norm"},
    kRmsNorm{"olmo_rms_norm"};
inline constexpr GpuKernel<NormBackwardArgs> kLayerNormInput{"olmo_layer_norm_input"},
    kRmsNormInput{"olmo_rms_norm_input"}, kLayerNormParameters{"olmo_layer_norm_parameters"},
    kRmsNormParameters{"olmo_rms_norm_parameters"};
template <class Element>
inline constexpr GpuKernel<LossRows<Element>, Index> kLossRows{
    name_for<Element>("olmo_loss_rows", "olmo_loss_rows_bf16")};
template <class Element>
inline constexpr GpuKernel<const Element*, Index, Index, float*, float*> kLogSums{
    name_for<Element>("olmo_log_sums", "olmo_log_sums_bf16")};
template <class Element>
inline constexpr GpuKernel<ScoredRows<Element>, Index> kScoreLabels{
    name_for<Element>("olmo_score_labels", "olmo_score_labels_bf16")};
inline constexpr GpuKernel<const SquaresPart*, Index, float*, Index> kBlockSquares{
    "olmo_block_squares"};
inline constexpr GpuKernel<const AdamWPart*, Index> kAdamW{"olmo_adamw"};
inline constexpr GpuKernel<const LionWPart*, Index> kLionW{"olmo_lionw"};
inline constexpr GpuKernel<const float*, const Index*, float*, Index, Index> kEmbedding{
    "olmo_embedding"};
inline constexpr GpuKernel<const Bf16*, const Index*, Bf16*, Index, Index> kEmbeddingBf16{
    "olmo_embedding_bf16"};
inline constexpr GpuKernel<const Bf16*, const Index*, float*, Index, Index> kEmbeddingWidened{
    "olmo_embedding_widened"};
template <class Element>
inline constexpr GpuKernel<EmbeddingGradient<Element>, Index> kEmbeddingBackward{
    name_for<Element>("olmo_embedding_backward", "olmo_embedding_backward_bf16")};
inline constexpr GpuKernel<const std::uint8_t*, Index, std::uint64_t*> kTraceSums{
    "olmo_trace_sums"};
/// By the side of the square tiles, and whether A and B are bf16: [A][B].
inline constexpr GpuKernel<GemmProblem> kGemm128[2][2] = {
    {{"olmo_gemm_128_ff"}, {"olmo_gemm_128_fb"}}, {{"olmo_gemm_128_bf"}, {"olmo_gemm_128_bb"}}};
inline constexpr GpuKernel<GemmProblem> kGemm64[2][2] = {
    {{"olmo_gemm_64_ff"}, {"olmo_gemm_64_fb"}}, {{"olmo_gemm_64_bf"}, {"olmo_gemm_64_bb"}}};
template <class Element>
inline constexpr GpuKernel<AttentionProblem<Element>> kAttention{
    name_for<Element>("olmo_attention", "olmo_attention_bf16")};
template <class Element>
inline constexpr GpuKernel<AttentionProblem<Element>, float*, Index> kAttentionDeltas{
    name_for<Element>("olmo_attention_deltas", "olmo_attention_deltas_bf16")};
template <class Element>
inline constexpr GpuKernel<AttentionProblem<Element>, const float*> kAttentionDq{
    name_for<Element>("olmo_attention_dq", "olmo_attention_dq_bf16")};
template <class Element>
inline constexpr GpuKernel<AttentionProblem<Element>, const float*> kAttentionDkv{
    name_for<Element>("olmo_attention_dkv", "olmo_attention_dkv_bf16")};
template <class Element>
inline constexpr GpuKernel<ForestGpuProblem<Element>> kAttentionForest{
    name_for<Element>("olmo_attention_forest", "olmo_attention_forest_bf16")};

}  // namespace gpu_kernels
}  // namespace olmo::ops
