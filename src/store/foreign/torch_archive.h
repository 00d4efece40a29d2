#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/files/zip_directory.h"
#include "store/foreign/pickle.h"
#include "store/foreign/tensor_file.h"

namespace olmo::store {

/// What torch.save writes: a zip file with a pickle, and beside it the storages in which the
/// pickle's tensors lie (torch/serialization.py). Nothing of the pickle is run.
class TorchArchive {
 public:
  /// Of a part of a file, which lies within it. Throws Error(kInput) if its pickle cannot be
  /// followed, or it was saved on a big-endian machine; Error(kDamaged) naming the file if it is
  /// cut, no zip file, or has no pickle.
  TorchArchive(const MappedFile& file, const FilePart& part);

  [[nodiscard]] const PickleValue& root() const noexcept { return pickle_.root(); }

  /// The tensors of the pickle: the value that it is, of the name `root`, or those in its dicts and
  /// lists, named by `root` and the keys and indices on the way to one, joined by `/`. Other
  /// objects are passed over. Of a tensor that ranks have in shards (ShardedTensor) those that are
  /// here.
  ///
  /// Throws Error(kDamaged) naming the tensor if it has no storage or lies outside of it;
  /// Error(kInput) if it is sparse, quantized or a DTensor, its values do not lie one after the
  /// other, or its dtype is not known.
  [[nodiscard]] std::vector<TensorEntry> tensors(const std::string& root = {}) const;

 private:
  std::string where_;
  std::map<std::string, ZipRecord> records_;
  std::string folder_;  ///< with which the names of the records begin
  Pickle pickle_;
};

}  // namespace olmo::store
