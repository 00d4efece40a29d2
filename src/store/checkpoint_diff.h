#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/named_tensors.h"

namespace olmo::store {

/// Tensors of anything that holds them: a checkpoint or run directory of ours (names prefixed
/// "model/" and "optim/"), a .safetensors file or a folder with one (names as they are, prefixed
/// "model/"). Throws Error(kInput) or Error(kDamaged).
NamedTensors load_named_tensors(const std::filesystem::path& path);

/// How one tensor differs between two sides.
struct TensorDifference {
  std::string name;
  /// equal | different | only in a | only in b | other shape | other dtype
  std::string verdict;
  std::int64_t elements = 0;
  std::int64_t unequal = 0;       ///< elements whose bits differ
  std::int64_t first_index = -1;  ///< flat index of the first of them
  double first_a = 0.0;
  double first_b = 0.0;
  double max_abs = 0.0;       ///< largest |a - b|; NaN if a NaN meets a number
  std::uint64_t max_ulp = 0;  ///< largest distance in representable numbers (floats only)
  friend bool operator==(const TensorDifference&, const TensorDifference&) = default;
};

/// One entry per name of either side, in a's order, then b's own.
std::vector<TensorDifference> diff_tensors(const NamedTensors& a, const NamedTensors& b);

}  // namespace olmo::store
