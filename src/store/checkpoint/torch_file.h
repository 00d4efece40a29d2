#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/files/zip_directory.h"
#include "store/checkpoint/pickle.h"
#include "store/checkpoint/tensor_file.h"

namespace olmo::store {

/// What torch.save writes: a zip file with a pickle, and beside it the storages in which the
/// pickle's tensors lie (torch/serialization.py). Tensors are those of the dict that the pickle is,
/// and of dicts and lists in it; the keys and indices on the way to one, joined by `/`, are its
/// name. Nothing of the pickle is run; other objects in it are passed over.
class TorchFile : public TensorFile {
 public:
  /// Throws Error(kInput) if the file cannot be opened, or its pickle cannot be followed;
  /// Error(kDamaged) naming file and tensor if it is not sound: cut, no zip file, without a pickle
  /// or a storage, a tensor outside of its storage. Error(kInput), too, for tensors that are
  /// sparse, quantized or distributed, whose values do not lie one after the other, or that were
  /// saved on a big-endian machine.
  explicit TorchFile(const std::filesystem::path& path);

  /// The pickle's dict, in which tensors are calls.
  [[nodiscard]] const PickleValue& root() const noexcept { return pickle_.root(); }

 private:
  std::map<std::string, ZipRecord> records_;
  Pickle pickle_;
};

}  // namespace olmo::store
