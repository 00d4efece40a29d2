#include "store/checkpoint/checkpoint_diff.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <type_traits>
#include <unordered_map>

#include "core/compute/named_tensors.h"
#include "core/compute/tensor.h"
#include "core/error.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/foreign/find_weights.h"
#include "store/foreign/safetensors.h"
#include "store/foreign/weight_files.h"

namespace olmo::store {
namespace {

using Verdict = TensorDifference::Verdict;

/// Numbers in their order as integers in theirs, so that neighbours differ by one and -0 and +0 by
/// none.
template <typename Float, typename Bits>
Bits ordered(Float value) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  const Bits bits = std::bit_cast<Bits>(value);
  return (bits & kSign) != 0 ? kSign - (bits & ~kSign) : kSign + bits;
}

template <typename Number>
void note_distance(Number x, Number y, TensorDifference& difference) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isnan(x) || std::isnan(y)) {
      ++difference.unequal_nans;
      return;
    }
    using Bits = std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>;
    const Bits a = ordered<Number, Bits>(x);
    const Bits b = ordered<Number, Bits>(y);
    difference.max_ulp = std::max<std::uint64_t>(difference.max_ulp, a > b ? a - b : b - a);
  }
  difference.max_abs =
      std::max(difference.max_abs, std::abs(static_cast<double>(x) - static_cast<double>(y)));
}

template <typename Number>
void compare_elements(const at::Tensor& a, const at::Tensor& b, TensorDifference& difference) {
  const auto* x = host_span<Number>(a).data();
  const auto* y = host_span<Number>(b).data();
  for (std::int64_t i = 0; i < difference.elements; ++i) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bit for bit is meant
    if (std::memcmp(x + i, y + i, sizeof(Number)) == 0) continue;
    if (difference.unequal++ == 0) {
      difference.first_index = i;
      difference.first_a = static_cast<double>(x[i]);
      difference.first_b = static_cast<double>(y[i]);
    }
    note_distance(x[i], y[i], difference);
  }
}

TensorSource::Entry entry_of(const std::shared_ptr<const CheckpointReader>& reader,
                             const CheckpointDataset& dataset) {
  return {.name = dataset.path.substr(1),
          .dtype = dataset.dtype,
          .shape = dataset.shape,
          .load = [reader, &dataset] { return reader->read_tensor(dataset); }};
}

/// Safetensors' word for a dtype in ours; words that we have none for stay as they are.
std::string dtype_word(const std::string& word) {
  if (word == "F32") return "float32";
  if (word == "F64") return "float64";
  return word == "I64" ? "int64" : word;
}

TensorSource foreign_source(const std::filesystem::path& path) {
  const auto stored = std::make_shared<const StoredTensors>(open_weights(path));
  TensorSource source;
  for (const StoredTensor& tensor : stored->tensors()) {
    source.entries.push_back({.name = "model/" + decode_olmo_key(tensor.name),
                              .dtype = dtype_word(tensor.dtype),
                              .shape = tensor.shape,
                              .load = [stored, &tensor] { return read_tensor(tensor); }});
  }
  return source;
}

TensorDifference compare_entries(const TensorSource::Entry& a, const TensorSource::Entry& b) {
  if (a.shape != b.shape) return {.name = a.name, .verdict = Verdict::kOtherShape};
  if (a.dtype != b.dtype) return {.name = a.name, .verdict = Verdict::kOtherDtype};
  return compare_tensors(a.name, a.load(), b.load());
}

}  // namespace

std::string to_string(Verdict verdict) {
  constexpr std::array<const char*, 6> kWords = {"equal",     "different",   "only in a",
                                                 "only in b", "other shape", "other dtype"};
  return kWords.at(static_cast<std::size_t>(verdict));
}

TensorSource open_tensor_source(const std::filesystem::path& path, bool weights_only) {
  if (holds_weights(path)) return foreign_source(path);
  const auto reader = std::make_shared<const CheckpointReader>(resolve_checkpoint(path));
  TensorSource source;
  for (const auto& dataset : reader->datasets()) {
    const bool wanted = dataset.path.starts_with("/model/") || !weights_only;
    if (dataset.dtype != "json" && wanted) source.entries.push_back(entry_of(reader, dataset));
  }
  return source;
}

TensorDifference compare_tensors(const std::string& name, const at::Tensor& a,
                                 const at::Tensor& b) {
  OLMO_CHECK(a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type());
  TensorDifference difference{.name = name, .elements = a.numel()};
  const at::Tensor x = a.contiguous();
  const at::Tensor y = b.contiguous();
  if (std::ranges::equal(host_bytes(x), host_bytes(y))) return difference;
  difference.verdict = Verdict::kDifferent;
  switch (a.scalar_type()) {
    case at::kFloat:
      compare_elements<float>(x, y, difference);
      break;
    case at::kDouble:
      compare_elements<double>(x, y, difference);
      break;
    case at::kLong:
      compare_elements<std::int64_t>(x, y, difference);
      break;
    default:
      throw Error(ErrorKind::kInput, name + ": tensors of " +
                                         std::string(c10::toString(a.scalar_type())) +
                                         " cannot be compared");
  }
  return difference;
}

std::vector<TensorDifference> diff_sources(const TensorSource& a, const TensorSource& b) {
  std::unordered_map<std::string_view, const TensorSource::Entry*> in_b;
  for (const auto& entry : b.entries) in_b.emplace(entry.name, &entry);
  std::vector<TensorDifference> differences;
  for (const auto& entry : a.entries) {
    const auto found = in_b.find(entry.name);
    if (found == in_b.end()) {
      differences.push_back({.name = entry.name, .verdict = Verdict::kOnlyInA});
      continue;
    }
    differences.push_back(compare_entries(entry, *found->second));
    in_b.erase(found);
  }
  for (const auto& entry : b.entries) {
    if (in_b.count(entry.name) != 0)
      differences.push_back({.name = entry.name, .verdict = Verdict::kOnlyInB});
  }
  return differences;
}

}  // namespace olmo::store
