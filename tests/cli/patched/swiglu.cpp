// Takes the place of ops/swiglu.cpp in the binary `olmo-harness-patched`: the last bit of one
// output of the backward is wrong, as a faulty kernel or processor would have it.
#define swiglu_backward sound_swiglu_backward
#include "ops/swiglu.cpp"  // NOLINT(bugprone-suspicious-include): this file stands in for it
#undef swiglu_backward

#include <bit>

namespace olmo::ops {

void swiglu_backward(const Context& context, const at::Tensor& dy_MF, const at::Tensor& u_M2F,
                     const at::Tensor& du_M2F, const at::Tensor& y_MF) {
  sound_swiglu_backward(context.named({}), dy_MF, u_M2F, du_M2F, y_MF);
  auto* first = du_M2F.data_ptr<float>();
  *first = std::bit_cast<float>(std::bit_cast<std::uint32_t>(*first) ^ 1U);
  context.traced(du_M2F);
}

}  // namespace olmo::ops
