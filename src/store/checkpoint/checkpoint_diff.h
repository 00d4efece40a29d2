#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/compute/named_tensors.h"

namespace olmo::store {

/// Tensors that are read one at a time: two large checkpoints need not fit into memory together.
struct TensorSource {
  struct Entry {
    std::string name;   ///< model/NAME or optim/KEY/NAME
    std::string dtype;  ///< float32, float64, int64, …
    std::vector<std::int64_t> shape;
    std::function<at::Tensor()> load;  ///< throws Error(kDamaged)
  };
  std::vector<Entry> entries;
};

/// Opens whatever holds tensors: a checkpoint, a run's folder (its latest), or what
/// open_weights() takes, whose names become model/NAME (Hugging Face's are
/// not translated). `weights_only` leaves the optimizer out. Throws Error(kInput) or
/// Error(kDamaged).
TensorSource open_tensor_source(const std::filesystem::path& path, bool weights_only = false);

/// How one tensor differs between two sides.
struct TensorDifference {
  enum class Verdict { kEqual, kDifferent, kOnlyInA, kOnlyInB, kOtherShape, kOtherDtype };

  std::string name;
  Verdict verdict = Verdict::kEqual;  ///< equal means: the same bits
  std::int64_t elements = 0;
  std::int64_t unequal = 0;       ///< elements whose bits differ
  std::int64_t unequal_nans = 0;  ///< those of them that are NaN on a side; they do not count below
  std::int64_t first_index = -1;  ///< flat index of the first unequal element
  double first_a = 0.0;
  double first_b = 0.0;
  double max_abs = 0.0;       ///< largest |a - b|
  std::uint64_t max_ulp = 0;  ///< largest distance in representable numbers; integers: 0
};
std::string to_string(TensorDifference::Verdict verdict);

/// Compares two tensors of equal shape and dtype (float32, float64, int64) bit by bit.
TensorDifference compare_tensors(const std::string& name, const at::Tensor& a, const at::Tensor& b);

/// One entry per name of either side: a's order, then those that only b has.
std::vector<TensorDifference> diff_sources(const TensorSource& a, const TensorSource& b);

}  // namespace olmo::store
