#pragma once

#include <cstdint>

namespace olmo::ops {

/// A number in bf16 ("brain floating point"): the upper half of the bits of an fp32.
struct Bf16 {
  std::uint16_t bits;
};

/// Kernels<Element> for each type that elements can have.
template <template <class> class Kernels>
struct PerElement {
  Kernels<float> fp32;
  Kernels<Bf16> bf16;

  template <class Element>
  [[nodiscard]] constexpr const Kernels<Element>& of() const {
    if constexpr (sizeof(Element) == sizeof(Bf16)) {
      return bf16;
    } else {
      return fp32;
    }
  }
};

}  // namespace olmo::ops
