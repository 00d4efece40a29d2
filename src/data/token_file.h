#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/files/input_file.h"

namespace olmo::data {

/// How one token id is stored. Token files are raw little-endian arrays.
enum class TokenDtype { kUint16, kUint32 };

/// "uint16" or "uint32", NumPy's names. Throws Error(kUsage) for anything else.
TokenDtype parse_token_dtype(std::string_view name);
std::string to_string(TokenDtype dtype);
std::size_t bytes_per_token(TokenDtype dtype);
/// The narrowest dtype that holds the ids [0, vocab_size).
TokenDtype narrowest_dtype(std::size_t vocab_size);

/// Where the sidecar of a token file lies: its name plus ".json".
std::filesystem::path sidecar_path(const std::filesystem::path& token_file);

/// A token file as OLMo's memory-mapped data set reads it, mapped and never copied.
///
/// Format: the ids of all documents one after the other, little-endian uint16 or uint32, no header,
/// no padding; the length comes from the file's size. The name ends in ".npy" by OLMo's habit,
/// although NumPy's own header is absent. Which dtype it is, the file does not say: the config
/// does, and our sidecar if there is one.
class TokenFile {
 public:
  /// Throws Error(kInput) if the file cannot be read, is empty, is text or of another format, has
  /// an odd size for `dtype`, or has a sidecar that states another dtype or length.
  TokenFile(const std::filesystem::path& path, TokenDtype dtype);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] TokenDtype dtype() const noexcept { return dtype_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return file_.path(); }

  [[nodiscard]] std::uint32_t at(std::uint64_t position) const;
  /// Tokens [first, first + out.size()).
  void read(std::uint64_t first, std::span<std::uint32_t> out) const;
  void read(std::uint64_t first, std::span<std::int64_t> out) const;

  /// Asks the kernel for tokens [first, first + count), which will be read soon.
  void prefetch(std::uint64_t first, std::uint64_t count) const;

  /// Position of the first id in [first, first + count) that is not below `vocab_size`; nothing if
  /// all are.
  [[nodiscard]] std::optional<std::uint64_t> find_id_beyond(std::uint64_t vocab_size,
                                                            std::uint64_t first,
                                                            std::uint64_t count) const;
  /// Throws Error(kInput) naming file, position and id if any id of the whole file is not below
  /// `vocab_size`.
  void check_ids_below(std::uint64_t vocab_size) const;

 private:
  MappedFile file_;
  TokenDtype dtype_;
  std::uint64_t size_ = 0;
};

/// What the sidecar of a token file says (written by `tokenize`, JSON). Only these keys are read
/// back; the rest is for people: documents, sources with their hashes, skipped
/// lines, warnings.
struct Sidecar {
  std::optional<TokenDtype> dtype;
  std::optional<std::uint64_t> tokens;
  std::optional<std::string> sha256;        ///< of the token file
  std::optional<std::string> index_sha256;  ///< of its document index
  std::optional<std::uint32_t> eos_token_id;
  std::optional<std::string> tokenizer_path;
  std::optional<std::string> tokenizer_sha256;
};

/// Nothing if the token file has no sidecar. Throws Error(kInput) if it has one that is not a JSON
/// object.
std::optional<Sidecar> read_sidecar(const std::filesystem::path& token_file);

/// The dtype of a file: as stated, else as its sidecar says, else OLMo's default. Throws as
/// parse_token_dtype.
TokenDtype dtype_of(const std::string& stated, const std::optional<Sidecar>& sidecar);

}  // namespace olmo::data
