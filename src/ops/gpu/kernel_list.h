// The kernels of kernels.cu by name, with the types of their parameters: the host's side. A test
// holds the two files together.
#pragma once

#include <cstdint>

#include "ops/kernels/attention.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/pointwise.h"
#include "ops/kernels/row_ops.h"

namespace olmo::ops {

template <class... Parameters>
struct GpuKernel {
  const char* name;
};

namespace gpu_kernels {

using Index = std::int64_t;

inline constexpr GpuKernel<const float*, float*, Index> kExp{"olmo_exp"}, kLog{"olmo_log"},
    kSigmoid{"olmo_sigmoid"};
inline constexpr GpuKernel<const float*, const float*, float*, Index> kAdd{"olmo_add"};
inline constexpr GpuKernel<float*, float, Index> kScale{"olmo_scale"};
inline constexpr GpuKernel<float*, const float*, Index, Index> kAddBias{"olmo_add_bias"};
inline constexpr GpuKernel<const float*, Index, Index, float*> kColumnSums{"olmo_column_sums"};
inline constexpr GpuKernel<float*, float, std::uint8_t*, Index> kClamp{"olmo_clamp"};
inline constexpr GpuKernel<const std::uint8_t*, float*, Index> kMask{"olmo_mask"};
inline constexpr GpuKernel<const float*, float*, Index, Index> kSwiglu{"olmo_swiglu"};
inline constexpr GpuKernel<const float*, const float*, float*, Index, Index> kSwigluBackward{
    "olmo_swiglu_backward"};
inline constexpr GpuKernel<RopeArgs, float, Index> kRope{"olmo_rope"};
inline constexpr GpuKernel<NormForwardArgs, Index> kLayerNorm{"olmo_layer_norm"},
    kRmsNorm{"olmo_rms_norm"};
inline constexpr GpuKernel<NormBackwardArgs> kLayerNormInput{"olmo_layer_norm_input"},
    kRmsNormInput{"olmo_rms_norm_input"}, kLayerNormParameters{"olmo_layer_norm_parameters"},
    kRmsNormParameters{"olmo_rms_norm_parameters"};
inline constexpr GpuKernel<LossRows, Index> kLossRows{"olmo_loss_rows"};
inline constexpr GpuKernel<const float*, Index, Index, float*, float*> kLogSums{"olmo_log_sums"};
inline constexpr GpuKernel<const float*, Index, float*, Index> kBlockSquares{"olmo_block_squares"};
inline constexpr GpuKernel<AdamWStep, const float*, float*, float*, float*, Index> kAdamW{
    "olmo_adamw"};
inline constexpr GpuKernel<LionWStep, const float*, float*, float*, Index> kLionW{"olmo_lionw"};
inline constexpr GpuKernel<const float*, const Index*, float*, Index, Index> kEmbedding{
    "olmo_embedding"};
inline constexpr GpuKernel<const Bf16*, const Index*, float*, Index, Index> kEmbeddingBf16{
    "olmo_embedding_bf16"};
inline constexpr GpuKernel<const float*, const Index*, const Index*, Index, float*, Index>
    kEmbeddingBackward{"olmo_embedding_backward"};
/// By the side of their square tiles.
inline constexpr GpuKernel<GemmProblem> kGemm128{"olmo_gemm_128"}, kGemm64{"olmo_gemm_64"},
    kGemm128Bf16{"olmo_gemm_128_bf16"}, kGemm64Bf16{"olmo_gemm_64_bf16"};
inline constexpr GpuKernel<AttentionProblem> kAttention{"olmo_attention"},
    kAttentionDq{"olmo_attention_dq"}, kAttentionDkv{"olmo_attention_dkv"};

}  // namespace gpu_kernels
}  // namespace olmo::ops
