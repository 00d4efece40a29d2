// How OpenMP's threads wait for each other; wait_policy.cpp says why.
#pragma once

namespace olmo {

/// GCC's OpenMP, which LibTorch brings: 15 to 60 µs, as processors pause.
inline constexpr char kWaitOfGcc[] = "GOMP_SPINCOUNT=1000";
/// Clang's, which a build by clang uses beside it: milliseconds.
inline constexpr char kWaitOfClang[] = "KMP_BLOCKTIME=0";
/// A user who has set one of these has decided.
inline constexpr const char* kWaitVariables[] = {"GOMP_SPINCOUNT", "KMP_BLOCKTIME",
                                                 "OMP_WAIT_POLICY"};

}  // namespace olmo
