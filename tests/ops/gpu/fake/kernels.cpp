// ops/gpu/kernels.cu as C++, and its kernels by name. The templates below compile only if the
// parameters of each are those that the host passes.
#include "kernels.h"

#include <cstring>
#include <tuple>
#include <utility>

#include "ops/gpu/kernel_list.h"
#include "ops/gpu/kernels.cu"

namespace olmo::fake {
namespace {

template <auto kFunction, class... P, std::size_t... kIndex>
constexpr Kernel entry(const ops::GpuKernel<P...>& kernel, void (*)(P...), const char* function,
                       std::index_sequence<kIndex...>) {
  return {kernel.name, function, [](void** arguments) -> std::function<void()> {
            const std::tuple<P...> own{*static_cast<P*>(arguments[kIndex])...};
            return [own] { std::apply(kFunction, own); };
          }};
}

template <auto kFunction, class... P>
constexpr Kernel entry(const ops::GpuKernel<P...>& kernel, void (*function)(P...),
                       const char* name) {
  return entry<kFunction>(kernel, function, name, std::index_sequence_for<P...>());
}

#define OLMO_ENTRY(constant, function) \
  entry<&ops::function>(ops::gpu_kernels::constant, &ops::function, #function)

constexpr Kernel kEntries[] = {
    OLMO_ENTRY(kExp, olmo_exp),
    OLMO_ENTRY(kLog, olmo_log),
    OLMO_ENTRY(kSigmoid, olmo_sigmoid),
    OLMO_ENTRY(kAdd, olmo_add),
    OLMO_ENTRY(kScale<float>, olmo_scale),
    OLMO_ENTRY(kScale<ops::Bf16>, olmo_scale_bf16),
    OLMO_ENTRY(kAddBf16, olmo_add_bf16),
    OLMO_ENTRY(kAddWidened, olmo_add_widened),
    OLMO_ENTRY(kClamp<float>, olmo_clamp),
    OLMO_ENTRY(kClamp<ops::Bf16>, olmo_clamp_bf16),
    OLMO_ENTRY(kMask<float>, olmo_mask),
    OLMO_ENTRY(kMask<ops::Bf16>, olmo_mask_bf16),
    OLMO_ENTRY(kSwiglu<float>, olmo_swiglu),
    OLMO_ENTRY(kSwiglu<ops::Bf16>, olmo_swiglu_bf16),
    OLMO_ENTRY(kSwigluBackward<float>, olmo_swiglu_backward),
    OLMO_ENTRY(kSwigluBackward<ops::Bf16>, olmo_swiglu_backward_bf16),
    OLMO_ENTRY(kActivation<float>, olmo_activation),
    OLMO_ENTRY(kActivation<ops::Bf16>, olmo_activation_bf16),
    OLMO_ENTRY(kActivationBackward<float>, olmo_activation_backward),
    OLMO_ENTRY(kActivationBackward<ops::Bf16>, olmo_activation_backward_bf16),
    OLMO_ENTRY(kRope<float>, olmo_rope),
    OLMO_ENTRY(kRope<ops::Bf16>, olmo_rope_bf16),
    OLMO_ENTRY(kLayerNorm, olmo_layer_norm),
    OLMO_ENTRY(kRmsNorm, olmo_rms_norm),
    OLMO_ENTRY(kLayerNormInput, olmo_layer_norm_input),
    OLMO_ENTRY(kRmsNormInput, olmo_rms_norm_input),
    OLMO_ENTRY(kLayerNormParameters, olmo_layer_norm_parameters),
    OLMO_ENTRY(kRmsNormParameters, olmo_rms_norm_parameters),
    OLMO_ENTRY(kLossRows<float>, olmo_loss_rows),
    OLMO_ENTRY(kLossRows<ops::Bf16>, olmo_loss_rows_bf16),
    OLMO_ENTRY(kLogSums<float>, olmo_log_sums),
    OLMO_ENTRY(kLogSums<ops::Bf16>, olmo_log_sums_bf16),
    OLMO_ENTRY(kScoreLabels<float>, olmo_score_labels),
    OLMO_ENTRY(kScoreLabels<ops::Bf16>, olmo_score_labels_bf16),
    OLMO_ENTRY(kBlockSquares, olmo_block_squares),
    OLMO_ENTRY(kAdamW, olmo_adamw),
    OLMO_ENTRY(kLionW, olmo_lionw),
    OLMO_ENTRY(kEmbedding, olmo_embedding),
    OLMO_ENTRY(kEmbeddingBf16, olmo_embedding_bf16),
    OLMO_ENTRY(kEmbeddingWidened, olmo_embedding_widened),
    OLMO_ENTRY(kEmbeddingBackward<float>, olmo_embedding_backward),
    OLMO_ENTRY(kEmbeddingBackward<ops::Bf16>, olmo_embedding_backward_bf16),
    OLMO_ENTRY(kRoundToBf16, olmo_round_to_bf16),
    OLMO_ENTRY(kTraceSums, olmo_trace_sums),
    OLMO_ENTRY(kGemm128[0][0], olmo_gemm_128_ff),
    OLMO_ENTRY(kGemm128[0][1], olmo_gemm_128_fb),
    OLMO_ENTRY(kGemm128[1][0], olmo_gemm_128_bf),
    OLMO_ENTRY(kGemm128[1][1], olmo_gemm_128_bb),
    OLMO_ENTRY(kGemm64[0][0], olmo_gemm_64_ff),
    OLMO_ENTRY(kGemm64[0][1], olmo_gemm_64_fb),
    OLMO_ENTRY(kGemm64[1][0], olmo_gemm_64_bf),
    OLMO_ENTRY(kGemm64[1][1], olmo_gemm_64_bb),
    OLMO_ENTRY(kAttention<float>, olmo_attention),
    OLMO_ENTRY(kAttentionDeltas<float>, olmo_attention_deltas),
    OLMO_ENTRY(kAttentionDq<float>, olmo_attention_dq),
    OLMO_ENTRY(kAttentionDkv<float>, olmo_attention_dkv),
    OLMO_ENTRY(kAttentionForest<float>, olmo_attention_forest),
    OLMO_ENTRY(kAttention<ops::Bf16>, olmo_attention_bf16),
    OLMO_ENTRY(kAttentionDeltas<ops::Bf16>, olmo_attention_deltas_bf16),
    OLMO_ENTRY(kAttentionDq<ops::Bf16>, olmo_attention_dq_bf16),
    OLMO_ENTRY(kAttentionDkv<ops::Bf16>, olmo_attention_dkv_bf16),
    OLMO_ENTRY(kAttentionForest<ops::Bf16>, olmo_attention_forest_bf16),
};

}  // namespace

const Kernel* find_kernel(const char* name) {
  for (const Kernel& e : kEntries) {
    if (std::strcmp(e.name, name) == 0 && std::strcmp(e.function, name) == 0) return &e;
  }
  return nullptr;
}

}  // namespace olmo::fake
