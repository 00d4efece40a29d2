#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
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

/// A checked tokenizer.json.
struct TokenizerFile {
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
};

/// Largest id accepted: tables are sized by it.
inline constexpr std::uint32_t kMaxTokenId = Bpe::kMaxIds - 1;

/// Reads and checks the file: kinds, ranges, one token for each id, one for each byte of UTF-8,
/// merges of known tokens. Throws Error(kInput) naming the file and the field.
TokenizerFile read_tokenizer_json(const std::filesystem::path& path);

}  // namespace olmo::data
