#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/compute/named_tensors.h"
#include "store/foreign/tensor_file.h"

namespace olmo::store {

/// A tensor of other software's, in one file or in shards over several.
struct StoredTensor {
  struct Part {
    const TensorFile* file = nullptr;
    const TensorEntry* entry = nullptr;
  };
  std::string name;
  std::string dtype;  ///< as TensorEntry has it
  std::vector<std::int64_t> shape;
  std::vector<Part> parts;  ///< in the order of their values: all of the tensor, each value once
};

/// The tensors of several files.
class StoredTensors {
 public:
  /// What a tensor of the files is called; nothing: it is none of those that are looked for.
  using NameOf = std::function<std::optional<std::string>(const std::string& name)>;

  /// Tensors of shards are put together by their places. Values that several files have, of ranks
  /// that hold the same, are those of the first. Throws Error(kDamaged) beginning with `where` and
  /// naming a tensor of which shards are missing, overlap, or differ in shape or dtype.
  StoredTensors(
      std::vector<TensorFile> files, const std::string& where,
      const NameOf& name_of = [](const std::string& name) { return name; });
  StoredTensors(const StoredTensors&) = delete;  // tensors point to files
  StoredTensors& operator=(const StoredTensors&) = delete;
  StoredTensors(StoredTensors&&) noexcept = default;
  StoredTensors& operator=(StoredTensors&&) noexcept = default;
  ~StoredTensors() = default;

  [[nodiscard]] const std::vector<TensorFile>& files() const noexcept { return files_; }
  /// Each name once, in the order of the files.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const noexcept { return tensors_; }

 private:
  std::vector<TensorFile> files_;
  std::vector<StoredTensor> tensors_;
};

/// A copy in the tensor's own dtype. Throws as TensorFile::tensor.
at::Tensor read_tensor(const StoredTensor& tensor);

}  // namespace olmo::store
