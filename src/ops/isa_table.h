// How an op's .cpp reaches the copies of its kernel that olmo_isa_kernels compiles.
#pragma once

#include "core/policy.h"

/// Declares `const Type name` of each instruction set's namespace (defined by a file in kernels/)
/// and the function `const Type& name##_for(Isa)` that picks one. Use it inside namespace olmo::ops
/// of the op's .cpp.
#if defined(__x86_64__)
#define OLMO_ISA_TABLE(Type, name)                               \
  namespace isa_plain {                                          \
  extern const Type name;                                        \
  }                                                              \
  namespace isa_avx2 {                                           \
  extern const Type name;                                        \
  }                                                              \
  namespace isa_avx512 {                                         \
  extern const Type name;                                        \
  }                                                              \
  static inline const Type& name##_for(Isa isa) {                \
    if (isa == Isa::kAvx512) return isa_avx512::name;            \
    return isa == Isa::kAvx2 ? isa_avx2::name : isa_plain::name; \
  }
#else
#define OLMO_ISA_TABLE(Type, name) \
  namespace isa_plain {            \
  extern const Type name;          \
  }                                \
  static inline const Type& name##_for(Isa) { return isa_plain::name; }
#endif
