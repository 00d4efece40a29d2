#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/compute/named_tensors.h"
#include "core/files/input_file.h"

// The safetensors format: 8 bytes N (little-endian), N bytes of JSON, then the tensors' bytes
// without gaps. The JSON maps each name to {"dtype", "shape", "data_offsets": [begin, end)}
// (offsets from the end of the JSON), and `__metadata__` to a map of strings. Every file may be
// damaged or hostile: all of that is checked before a tensor is handed out.

namespace olmo::store {

using SafetensorsMetadata = std::map<std::string, std::string>;

/// One tensor as its file describes it.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  ///< the file's word: F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL, …
  std::vector<std::int64_t> shape;  ///< empty: one number
  std::size_t offset = 0;           ///< from the start of the file
  std::size_t bytes = 0;
};

/// A .safetensors file, memory-mapped and checked as a whole.
class SafetensorsFile {
 public:
  /// Throws Error(kInput) if the file cannot be opened, Error(kDamaged) naming file and tensor if
  /// it is not sound: too short, a header over 100 MB or not JSON, an unknown dtype, a size that is
  /// not shape x dtype, gaps, overlaps, trailing bytes, a duplicate name.
  explicit SafetensorsFile(const std::filesystem::path& path);

  /// In the order of their bytes.
  [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const noexcept { return entries_; }
  [[nodiscard]] const SafetensorsMetadata& metadata() const noexcept { return metadata_; }

  /// The bytes of one of entries(), in the map of the file; of any alignment.
  [[nodiscard]] std::span<const std::byte> bytes(const SafetensorsEntry& entry) const {
    return file_.bytes().subspan(entry.offset, entry.bytes);
  }
  /// The map itself, for what it can be told of parts of it.
  [[nodiscard]] const MappedFile& map() const noexcept { return file_; }

  /// A copy in the file's own dtype. Throws Error(kDamaged) if there is no such tensor, or its
  /// dtype has none in LibTorch.
  [[nodiscard]] at::Tensor tensor(const std::string& name) const;

 private:
  [[nodiscard]] const SafetensorsEntry& entry(const std::string& name) const;

  MappedFile file_;
  SafetensorsMetadata metadata_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::size_t> index_;
};

/// True for a file named *.safetensors, and for a folder with model.safetensors or
/// model.safetensors.index.json.
bool holds_safetensors(const std::filesystem::path& path);

/// A file; or those of a folder: its `model.safetensors`, else the shards that its
/// `model.safetensors.index.json` names, in the order of their names. Throws as SafetensorsFile;
/// Error(kDamaged) also if the index and its shards disagree.
std::vector<SafetensorsFile> open_safetensors(const std::filesystem::path& path);

/// Writes contiguous CPU tensors under a temporary name, fsyncs and renames. The file is a function
/// of the arguments alone and opens in any safetensors reader. Throws Error(kFailure) if the disk
/// refuses, OLMO_CHECK on duplicate names.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const SafetensorsMetadata& metadata = {});

// The keys of OLMo's own safetensors (olmo/safetensors_util.py): the URL-safe base64 of a Python
// pickle of ((name,), False), in optim.safetensors of (("state", name, "exp_avg"), False). Only the
// bytes of that one shape, of up to three texts, are recognised; nothing is ever executed.

/// The key of a tensor's name, as OLMo writes it (pickle protocol 4).
std::string encode_olmo_key(const std::string& name);

/// The texts behind a key of OLMo's; none: it is another text.
std::vector<std::string> decode_olmo_path(const std::string& key);

/// The name behind a key of OLMo's; any other text as it is.
std::string decode_olmo_key(const std::string& key);

}  // namespace olmo::store
