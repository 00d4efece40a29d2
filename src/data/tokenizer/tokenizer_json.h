#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/hash.h"
#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe.h"

namespace olmo::data {

/// How a text is split into pre-tokens.
enum class SplitPattern : std::uint8_t {
  kGpt2,    ///< ByteLevel's own
  kCl100k,  ///< cl100k_base's
};

/// The special tokens that a post-processor puts around a text.
struct AddedIds {
  std::vector<std::uint32_t> before, after;

  [[nodiscard]] bool empty() const { return before.empty() && after.empty(); }
};

/// A checked tokenizer.json.
struct TokenizerFile {
  std::filesystem::path path;  ///< for messages
  Digest digest;
  bool nfc = false;
  SplitPattern split = SplitPattern::kGpt2;
  bool ignore_merges =
      false;  ///< a pre-token that is in `vocab` is that token, whatever merges say
  std::unordered_map<std::string, std::uint32_t>
      vocab;  ///< the model's, in the byte-level alphabet
  std::vector<Merge> merges;
  std::array<std::uint32_t, 256> byte_ids{};  ///< 0 for bytes that UTF-8 does not have
  std::vector<AddedToken> added_tokens;
  AddedIds special;
};

/// Largest id accepted: tables are sized by it.
inline constexpr std::uint32_t kMaxTokenId = Bpe::kMaxIds - 1;

/// Reads and checks the file: kinds, ranges, one token for each id, one for each byte of UTF-8,
/// merges of known tokens. Throws Error(kInput) naming the file and the field.
TokenizerFile read_tokenizer_json(const std::filesystem::path& path);

/// GPT-2's byte-level alphabet: printable bytes of Latin-1 stand for themselves, the other 68 for
/// U+0100 and up in ascending order, so that each byte has a visible character ("Ġ" is the blank).
class ByteAlphabet {
 public:
  ByteAlphabet();
  /// The character of `byte`, as UTF-8.
  [[nodiscard]] std::string character(std::uint8_t byte) const;
  /// The bytes that `token` spells, or nothing if one of its characters is not of the alphabet.
  [[nodiscard]] std::optional<std::string> bytes_of(std::string_view token) const;

 private:
  static constexpr std::uint32_t kCodes = 256 + 68;
  std::array<std::uint32_t, 256> code_of_{};
  std::array<int, kCodes> byte_of_{};  ///< -1: not of the alphabet
};

}  // namespace olmo::data
