#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/unicode_table.h"

namespace olmo::data {

/// One entry of `added_tokens` in tokenizer.json.
struct AddedToken {
  std::uint32_t id = 0;
  std::string content;
  bool single_word = false;  ///< no match inside a word
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  bool normalized = true;    ///< searched for in the normalized text, else in the text as given
  bool special = false;      ///< decode can leave it out
};

/// Finds added tokens in a text: leftmost match, the longest of those; the flags are applied to
/// each match as the `tokenizers` library's AddedVocabulary does.
class AddedTokenMatcher {
 public:
  /// A stretch of the text, or an added token in its place.
  struct Part {
    std::string_view text;
    bool is_token = false;
    std::uint32_t id = 0;
  };

  /// `tokens[i].content` is what is searched for; none may be empty or there twice.
  AddedTokenMatcher(const UnicodeTable& table, std::vector<AddedToken> tokens);

  /// Appends the parts of `text` in order; stretches are never empty.
  void split(std::string_view text, std::vector<Part>& parts) const;

 private:
  struct Node {
    std::vector<std::pair<char, std::uint32_t>> children;
    std::int64_t token = -1;
  };
  struct Match {
    std::size_t start = std::string_view::npos;
    std::size_t end = 0;
    std::size_t token = 0;
  };

  [[nodiscard]] Match find(std::string_view text, std::size_t from) const;
  [[nodiscard]] Match match_at(std::string_view text, std::size_t at) const;
  [[nodiscard]] bool is_inside_word(std::string_view text, const Match& match) const;

  const UnicodeTable* table_;
  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  std::array<bool, 256> starts_{};  ///< bytes that a token begins with
  std::vector<std::array<char, 2>>
      beginnings_;  ///< first two bytes of every token, unless there are too many
};

}  // namespace olmo::data
