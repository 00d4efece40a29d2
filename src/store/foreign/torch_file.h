#pragma once

#include <filesystem>

#include "core/compute/named_tensors.h"
#include "store/foreign/tensor_file.h"
#include "store/foreign/torch_archive.h"

namespace olmo::store {

/// A file that torch.save wrote of a dict.
class TorchFile : public TensorFile {
 public:
  /// Throws Error(kInput) if the file cannot be opened, or holds no dict; and as TorchArchive.
  explicit TorchFile(const std::filesystem::path& path);

  /// The dict, in which tensors are calls.
  [[nodiscard]] const PickleValue& root() const noexcept { return archive_.root(); }

 private:
  TorchArchive archive_;
};

/// Writes contiguous CPU tensors as torch.save does a dict of them: torch.load reads it, also with
/// weights_only. Under a temporary name, fsyncs and renames. The file is a function of the
/// arguments and of LibTorch's version. Throws Error(kFailure) if the disk refuses.
void write_torch_file(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace olmo::store
