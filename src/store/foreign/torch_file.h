#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/compute/named_tensors.h"
#include "core/files/zip_directory.h"
#include "store/foreign/pickle.h"
#include "store/foreign/tensor_file.h"

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

/// Writes contiguous CPU tensors as torch.save does a dict of them: torch.load reads it, also with
/// weights_only. Under a temporary name, fsyncs and renames. The file is a function of the
/// arguments and of LibTorch's version. Throws Error(kFailure) if the disk refuses.
void write_torch_file(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace olmo::store
