#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"

namespace olmo::data {

/// A byte-level BPE tokenizer read from Hugging Face's `tokenizer.json`: text → token ids and back,
/// with the ids of the `tokenizers` library (0.23).
///
/// Supported, that is OLMo 1's files and OLMo 2's: NFC or no normalizer; the ByteLevel
/// pre-tokenizer with its GPT-2 split, or cl100k_base's split before it, and no prefix space;
/// byte-level BPE over all bytes of UTF-8, with `ignore_merges` or without; added tokens with every
/// flag; the ByteLevel decoder; a post-processor that puts special tokens before and after a text.
/// Anything else in the file that could change ids is refused by name.
///
/// Immutable after load; every member may be called from several threads at once. Ids are the same
/// whatever the thread count and whatever was encoded before.
class Tokenizer {
 public:
  /// What the file's post-processor puts around a text (the library's add_special_tokens).
  enum class SpecialTokens : std::uint8_t { kLeftOut, kAdded };

  /// Throws Error(kInput) with one sentence naming the file and the field if it cannot be read or
  /// is not supported.
  static Tokenizer load(const std::filesystem::path& path);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Appends the ids of `text`, which must be UTF-8: otherwise Error(kInput) names the offset of
  /// the first bad byte and `ids` is left as it was. (The library only takes str; a caller that
  /// wants replacement must replace first.)
  void encode(std::string_view text, std::vector<std::uint32_t>& ids,
              SpecialTokens special = SpecialTokens::kLeftOut) const;

  /// Ids of each document, in order; shared out by parallel_for over at most `threads`
  /// contiguous parts of about equal bytes. Throws as `encode`.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> encode_batch(
      std::span<const std::string_view> documents, int threads) const;

  /// Text of `ids`. Bytes which are not UTF-8 together become U+FFFD, one for each maximal part (as
  /// Python's errors='replace'); ids outside the vocabulary are skipped, as the library does.
  /// `skip_special` drops added tokens whose `special` flag is set.
  [[nodiscard]] std::string decode(std::span<const std::uint32_t> ids,
                                   bool skip_special = false) const;

  /// Id of a token as it is spelled in the file: added tokens as text, others in the byte-level
  /// alphabet ("Ġthe").
  [[nodiscard]] std::optional<std::uint32_t> token_to_id(std::string_view token) const;
  [[nodiscard]] std::optional<std::string> id_to_token(std::uint32_t id) const;

  /// Number of tokens, added ones included: OLMo's `vocab_size`. Ids can be larger only if the file
  /// has gaps.
  [[nodiscard]] std::size_t vocab_size() const;
  /// SHA-256 of the file.
  [[nodiscard]] const Digest& digest() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace olmo::data
