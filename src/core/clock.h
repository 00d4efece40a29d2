#pragma once

#include <chrono>

namespace olmo {

/// Seconds that have passed since `start`, by the clock that nobody sets.
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace olmo
