#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/compute/named_tensors.h"
#include "store/foreign/tensor_file.h"

// The safetensors format: 8 bytes N (little-endian), N bytes of JSON, then the tensors' bytes
// without gaps. The JSON maps each name to {"dtype", "shape", "data_offsets": [begin, end)}
// (offsets from the end of the JSON), and `__metadata__` to a map of strings.

namespace olmo::store {

using SafetensorsMetadata = std::map<std::string, std::string>;

/// A .safetensors file, memory-mapped and checked as a whole.
class SafetensorsFile : public TensorFile {
 public:
  /// Throws Error(kInput) if the file cannot be opened, Error(kDamaged) naming file and tensor if
  /// it is not sound: too short, a header over 100 MB or not JSON, an unknown dtype, a size that is
  /// not shape x dtype, gaps, overlaps, trailing bytes, a duplicate name.
  explicit SafetensorsFile(const std::filesystem::path& path);

  [[nodiscard]] const SafetensorsMetadata& metadata() const noexcept { return metadata_; }

 private:
  SafetensorsMetadata metadata_;
};

/// Writes contiguous CPU tensors under a temporary name, fsyncs and renames. The file is a function
/// of the arguments alone and opens in any safetensors reader. Throws Error(kFailure) if the disk
/// refuses, OLMO_CHECK on duplicate names.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const SafetensorsMetadata& metadata = {});

// The keys of OLMo's own safetensors (olmo/safetensors_util.py): the URL-safe base64 of a Python
// pickle of ((name,), False), in optim.safetensors of (("state", name, "exp_avg"), False). Nothing
// of it is run.

/// The names behind a key of OLMo's, numbers in digits; none: it is another text.
std::vector<std::string> decode_olmo_path(const std::string& key);

/// The name behind a key of OLMo's; any other text as it is.
std::string decode_olmo_key(const std::string& key);

}  // namespace olmo::store
