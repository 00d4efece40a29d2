#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/compute/named_tensors.h"
#include "core/files/input_file.h"

// What the formats of other software's weights have in common: a memory-mapped file, and tensors at
// places in it. Every file may be damaged or hostile: all of that is checked before a tensor is
// handed out.

namespace olmo::store {

/// Where the values of a shard lie in its tensor.
struct ShardPlace {
  std::vector<std::int64_t> shape;  ///< of the whole tensor
  std::int64_t begin = 0;           ///< the shard's first value, of all in a row
};

/// One tensor as its file describes it.
struct TensorEntry {
  std::string name;
  std::string dtype;  ///< safetensors' word: F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL, …
  std::vector<std::int64_t> shape;  ///< empty: one number
  std::size_t offset = 0;           ///< from the start of the file
  std::size_t bytes = 0;
  std::optional<std::uint32_t> crc32 = {};  ///< of its bytes, where the file has it
  std::optional<ShardPlace> shard_of = {};  ///< none: it is a whole tensor

  /// How many it has; its dtype is one of find_tensor_dtype().
  [[nodiscard]] std::size_t values() const;
};

struct TensorDtype {
  const char* word;
  std::size_t bytes;
  at::ScalarType type;  ///< Undefined: readable by name and size only
};

/// Null: there is no such word.
const TensorDtype* find_tensor_dtype(std::string_view word);
/// Throws Error(kFailure) for a dtype that has no word.
const char* dtype_word(at::ScalarType type);

/// Bytes of a tensor of this shape. Throws Error(kDamaged) beginning with `where` for one that no
/// memory holds.
std::size_t checked_tensor_bytes(const std::string& where, const TensorDtype& dtype,
                                 std::span<const std::uint64_t> shape);

/// The place of a shard of `sizes` at `offsets`, one of each for each dimension. Nothing where that
/// is not within a tensor of `shape`, or its values do not lie one after the other there.
std::optional<ShardPlace> shard_place(std::vector<std::int64_t> shape,
                                      std::span<const std::int64_t> offsets,
                                      std::span<const std::int64_t> sizes);

/// The same. Throws Error(kInput) beginning with `where` where there is none.
ShardPlace required_shard_place(const std::string& where, std::vector<std::int64_t> shape,
                                std::span<const std::int64_t> offsets,
                                std::span<const std::int64_t> sizes);

/// Throws Error(kDamaged) beginning with `where` if an index names another thing than a file that
/// lies beside it.
void check_is_beside(const std::string& where, const std::filesystem::path& file);

/// Throws Error(kDamaged); names of tensors, which may hold anything, are made safe to show.
[[noreturn]] void throw_damaged(const std::string& where, const std::string& what);

/// Of this tensor of `where`. Throws Error(kDamaged) for a dtype that LibTorch does not have.
at::ScalarType readable_type(const std::string& where, const TensorEntry& entry);

/// The tensors of one file.
class TensorFile {
 public:
  /// In the order of their bytes.
  [[nodiscard]] const std::vector<TensorEntry>& entries() const noexcept { return entries_; }

  /// The bytes of one of entries(), in the map of the file; of any alignment.
  [[nodiscard]] std::span<const std::byte> bytes(const TensorEntry& entry) const {
    return file_.bytes().subspan(entry.offset, entry.bytes);
  }
  /// The map itself, for what it can be told of parts of it.
  [[nodiscard]] const MappedFile& map() const noexcept { return file_; }

  /// A copy of a whole tensor in the file's own dtype. Throws Error(kDamaged) if there is no such
  /// tensor, its dtype has none in LibTorch, or its bytes do not have their checksum.
  [[nodiscard]] at::Tensor tensor(const std::string& name) const;

  /// Copies the bytes of one of entries(). Throws Error(kDamaged) if they do not have their
  /// checksum.
  void read(const TensorEntry& entry, std::span<std::byte> into) const;

 protected:
  explicit TensorFile(const std::filesystem::path& path) : file_(path) {}

  /// Throws Error(kDamaged) if two whole tensors have one name.
  void set_entries(std::vector<TensorEntry> entries);
  /// A whole tensor. Throws Error(kDamaged) if there is no such one.
  [[nodiscard]] const TensorEntry& entry(const std::string& name) const;

 private:
  MappedFile file_;
  std::vector<TensorEntry> entries_;
  std::map<std::string, std::size_t> index_;  ///< of whole tensors
};

/// Compares what is read of a tensor, from its first byte to its last, with its checksum.
class TensorCheck {
 public:
  TensorCheck(const TensorFile& file, const TensorEntry& entry) : file_(file), entry_(entry) {}
  void update(std::span<const std::byte> bytes);
  /// Throws Error(kDamaged) if it is another one than the file says.
  void finish() const;

 private:
  const TensorFile& file_;
  const TensorEntry& entry_;
  std::uint32_t crc32_ = 0;
};

}  // namespace olmo::store
