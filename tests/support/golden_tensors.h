#pragma once

#include <map>
#include <string>

#include "core/compute/named_tensors.h"

namespace olmo::test {

/// A reference file of tests/data (or of a trusted directory): tensors by name and the string
/// metadata. Reads just enough of the safetensors format for files that we wrote ourselves.
struct GoldenTensors {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;

  [[nodiscard]] const at::Tensor& at(const std::string& name) const;
  /// The tensors whose names begin with `prefix`, without it.
  [[nodiscard]] NamedTensors with_prefix(const std::string& prefix) const;
};

GoldenTensors read_golden_tensors(const std::filesystem::path& path);

/// Largest absolute difference, in double.
double max_abs_difference(const at::Tensor& a, const at::Tensor& b);

/// True if every bit is the same.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

}  // namespace olmo::test
