#include "store/foreign/stored_tensors.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/text/safe_text.h"

namespace olmo::store {
namespace {

using Part = StoredTensor::Part;

std::int64_t begin_of(const Part& part) {
  return part.entry->shard_of ? part.entry->shard_of->begin : 0;
}

const std::vector<std::int64_t>& whole_shape(const Part& part) {
  return part.entry->shard_of ? part.entry->shard_of->shape : part.entry->shape;
}

std::int64_t values_of(const Part& part) { return static_cast<std::int64_t>(part.entry->values()); }

/// Puts the parts of one tensor in the order of their values.
class Assembler {
 public:
  Assembler(std::string name, std::string where)
      : where_(std::move(where)),
        tensor_{.name = std::move(name), .dtype = {}, .shape = {}, .parts = {}} {}

  StoredTensor assemble(std::vector<Part> parts) {
    tensor_.shape = whole_shape(parts.front());
    tensor_.dtype = parts.front().entry->dtype;
    for (const Part& part : parts) {
      if (whole_shape(part) != tensor_.shape || part.entry->dtype != tensor_.dtype)
        fail("has another shape or dtype in " + part.file->map().path().string());
    }
    std::ranges::stable_sort(parts, {}, begin_of);
    const std::int64_t values = number_of_values();
    std::int64_t next = 0;
    for (const Part& part : parts) next = add(part, next, values);
    if (next != values) fail_missing(next, values);
    return std::move(tensor_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw_damaged(where_ + ": tensor " + tensor_.name, what);
  }
  [[noreturn]] void fail_missing(std::int64_t begin, std::int64_t end) const {
    fail("its values " + std::to_string(begin) + " to " + std::to_string(end - 1) +
         " are in none of the files: is the file of a rank missing?");
  }

  [[nodiscard]] std::int64_t number_of_values() const {
    const std::vector<std::uint64_t> sizes(tensor_.shape.begin(), tensor_.shape.end());
    const auto& dtype = *find_tensor_dtype(tensor_.dtype);
    return static_cast<std::int64_t>(
        checked_tensor_bytes(where_ + ": tensor " + tensor_.name, dtype, sizes) / dtype.bytes);
  }

  /// Returns the first value behind it.
  std::int64_t add(const Part& part, std::int64_t next, std::int64_t values) {
    const std::int64_t begin = begin_of(part), size = values_of(part);
    const bool has_begun = !tensor_.parts.empty();
    if (size == 0 && (values > 0 || has_begun)) return next;
    if (has_begun && begin == begin_of(tensor_.parts.back()) &&
        size == values_of(tensor_.parts.back()))
      return next;  // a replica
    if (begin > next) fail_missing(next, begin);
    if (begin < next || size > values - begin)
      fail("its shard in " + part.file->map().path().string() +
           " overlaps another, or is too long");
    tensor_.parts.push_back(part);
    return next + size;
  }

  std::string where_;
  StoredTensor tensor_;
};

}  // namespace

StoredTensors::StoredTensors(std::vector<TensorFile> files, const std::string& where,
                             const NameOf& name_of)
    : files_(std::move(files)) {
  std::map<std::string, std::size_t> index;
  std::vector<std::pair<std::string, std::vector<Part>>> parts;
  for (const TensorFile& file : files_) {
    for (const TensorEntry& entry : file.entries()) {
      const auto name = name_of(entry.name);
      if (!name) continue;
      const auto [place, is_new] = index.emplace(*name, parts.size());
      if (is_new) parts.push_back({*name, {}});
      parts[place->second].second.push_back({&file, &entry});
    }
  }
  for (auto& [name, of_tensor] : parts)
    tensors_.push_back(Assembler(name, where).assemble(std::move(of_tensor)));
}

at::Tensor read_tensor(const StoredTensor& tensor) {
  const StoredTensor::Part& first = tensor.parts.front();
  at::Tensor whole =
      new_tensor(tensor.shape, readable_type(first.file->map().path().string(), *first.entry));
  auto into = std::as_writable_bytes(mutable_host_bytes(whole));
  for (const auto& [file, entry] : tensor.parts) {
    file->read(*entry, into.first(entry->bytes));
    into = into.subspan(entry->bytes);
  }
  return whole;
}

}  // namespace olmo::store
