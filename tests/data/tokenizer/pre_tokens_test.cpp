#include "data/tokenizer/pre_tokens.h"

#include <random>
#include <string>
#include <vector>

#include "core/text/text.h"
#include "support/catch.h"

namespace {

using olmo::data::Cl100kSplit;
using olmo::data::Gpt2Split;
using olmo::data::PreTokenStarts;
using olmo::data::UnicodeTable;

const UnicodeTable& table() {
  static const UnicodeTable table;
  return table;
}

template <typename Split>
std::vector<std::size_t> starts_of(std::string_view text) {
  std::array<std::size_t, PreTokenStarts<Split>::kCapacity> some{};
  std::vector<std::size_t> all;
  PreTokenStarts<Split> splitter(table(), text, text.data() + text.size());
  while (splitter.more()) {
    const std::size_t count = splitter.next(some, 0);
    all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return all;
}

/// The regular expression read from left to right, one alternative after the other.
class Matcher {
 public:
  explicit Matcher(std::string_view text) : text_(text) {}

  std::vector<std::size_t> starts() const {
    std::vector<std::size_t> starts;
    for (std::size_t at = 0; at < text_.size(); at = end_from(at)) starts.push_back(at);
    return starts;
  }

 private:
  std::size_t end_from(std::size_t at) const {
    for (const std::string_view suffix : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (text_.substr(at, suffix.size()) == suffix) return at + suffix.size();
    }
    const std::size_t begin = text_[at] == ' ' ? at + 1 : at;
    for (const int kind : {olmo::data::kLetter, olmo::data::kNumber, olmo::data::kOther}) {
      if (const std::size_t end = run(begin, kind); end > begin) return end;
    }
    const std::size_t end = run(at, olmo::data::kSpace);
    std::size_t last = at;
    for (std::size_t next = at; next < end;
         next += olmo::decode_valid_utf8(text_.data() + next).size)
      last = next;
    return end == text_.size() || last == at ? end : last;
  }

  std::size_t run(std::size_t at, int kind) const {
    while (at < text_.size()) {
      const auto point = olmo::decode_valid_utf8(text_.data() + at);
      if (table().split_class(point.code) != kind) break;
      at += point.size;
    }
    return at;
  }

  std::string_view text_;
};

/// cl100k_base's regular expression on a list of code points, each alternative as it is written:
/// a repetition takes all it can and gives back one by one.
class Cl100kMatcher {
 public:
  explicit Cl100kMatcher(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const auto point = olmo::decode_valid_utf8(text.data() + at);
      offsets_.push_back(at);
      codes_.push_back(point.code);
      at += point.size;
    }
  }

  std::vector<std::size_t> starts() const {
    std::vector<std::size_t> starts;
    for (std::size_t at = 0; at < codes_.size(); at = end_from(at)) starts.push_back(offsets_[at]);
    return starts;
  }

 private:
  using Test = bool (Cl100kMatcher::*)(std::size_t) const;

  int kind(std::size_t at) const { return table().split_class(codes_[at]); }
  bool is_letter(std::size_t at) const { return kind(at) == olmo::data::kLetter; }
  bool is_number(std::size_t at) const { return kind(at) == olmo::data::kNumber; }
  bool is_other(std::size_t at) const { return kind(at) == olmo::data::kOther; }
  bool is_space(std::size_t at) const { return kind(at) == olmo::data::kSpace; }
  bool is_newline(std::size_t at) const { return codes_[at] == '\r' || codes_[at] == '\n'; }

  /// Number of code points from `at` on that pass, at most `most`.
  std::size_t count(std::size_t at, Test test, std::size_t most = ~std::size_t{0}) const {
    std::size_t n = 0;
    while (n < most && at + n < codes_.size() && (this->*test)(at + n)) ++n;
    return n;
  }

  std::uint32_t folded(std::size_t at) const {
    if (codes_[at] == 0x17F) return 's';
    return codes_[at] >= 'A' && codes_[at] <= 'Z' ? codes_[at] + 32 : codes_[at];
  }

  std::size_t end_from(std::size_t at) const {
    for (const std::string_view word : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      std::size_t n = 0;
      while (n < word.size() && at + n < codes_.size() &&
             folded(at + n) == static_cast<unsigned char>(word[n]))
        ++n;
      if (n == word.size()) return at + n;
    }
    const bool optional = !is_letter(at) && !is_number(at) && !is_newline(at);
    for (const std::size_t skip : {std::size_t{optional}, std::size_t{0}}) {
      if (const auto n = count(at + skip, &Cl100kMatcher::is_letter); n > 0) return at + skip + n;
    }
    if (const auto n = count(at, &Cl100kMatcher::is_number, 3); n > 0) return at + n;
    const std::size_t begin = codes_[at] == ' ' ? at + 1 : at;
    if (const auto n = count(begin, &Cl100kMatcher::is_other); n > 0)
      return begin + n + count(begin + n, &Cl100kMatcher::is_newline);
    const std::size_t spaces = count(at, &Cl100kMatcher::is_space);
    for (std::size_t n = spaces + 1; n-- > 0;) {
      if (const auto m = count(at + n, &Cl100kMatcher::is_newline); m > 0) return at + n + m;
    }
    for (std::size_t n = spaces; n > 0; --n) {
      if (at + n == codes_.size() || is_space(at + n)) return at + n;
    }
    return at + spaces;
  }

  std::vector<std::uint32_t> codes_;
  std::vector<std::size_t> offsets_;
};

}  // namespace

TEST_CASE("the split of a text follows the regular expression at every alignment", "[data]") {
  const std::vector<std::string> pieces = {
      "a",   "b", "word", "1",         "23",       " ",           " ",  "  ", "\n",
      "\t ", "'", "'s",   "'t",        "'re",      "'ve",         "'m", "'d", "'l",
      "'ll", ".", "!?",   "é",         "я",        "日本",        "٣",  "½",  "🙂",
      "́",    " ", "　",   " \xC2\xA0", "\xC2\x85", "\xE2\x80\x83"};
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const auto size = random() % 400;
    while (text.size() < size) text += pieces[random() % pieces.size()];
    CAPTURE(text);
    CHECK(starts_of<Gpt2Split>(text) == Matcher(text).starts());
  }
}

TEST_CASE("a split does not read past the end of its text", "[data]") {
  const std::string text = "  x 's";
  CHECK(starts_of<Gpt2Split>(std::string_view(text).substr(0, 2)) == std::vector<std::size_t>{0});
  CHECK(starts_of<Gpt2Split>(std::string_view(text).substr(0, 5)) ==
        std::vector<std::size_t>{0, 1, 3});
  CHECK(starts_of<Gpt2Split>("").empty());
  CHECK(starts_of<Cl100kSplit>(std::string_view(text).substr(0, 2)) == std::vector<std::size_t>{0});
  CHECK(starts_of<Cl100kSplit>(std::string_view(text).substr(0, 5)) ==
        std::vector<std::size_t>{0, 1, 3});
  CHECK(starts_of<Cl100kSplit>("").empty());
}

TEST_CASE("cl100k_base's split follows its regular expression", "[data]") {
  const std::vector<std::string> pieces = {"a",   "B",         "word",
                                           "1",   "23",        "4567",
                                           " ",   "  ",        "\n",
                                           "\r",  "\r\n",      "\t",
                                           "'",   "'s",        "'T",
                                           "'rE", "'VE",       "'m",
                                           "'D",  "'l",        "'r",
                                           "'LL", ".",         "!?",
                                           "é",   "日本",      "٣",
                                           "½",   "🙂",      "ſ",
                                           "'ſ",  "́",          "'\xE2\x84\xAA",
                                           " ",   "　",        "\v",
                                           "\f",  "\xC2\x85 ", "\xE2\x80\x83"};
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const auto size = random() % 400;
    while (text.size() < size) text += pieces[random() % pieces.size()];
    CAPTURE(text);
    CHECK(starts_of<Cl100kSplit>(text) == Cl100kMatcher(text).starts());
  }
}

TEST_CASE("cl100k_base's split passes over long runs in several steps", "[data]") {
  for (const std::string unit : {"a", " ", "!", "\n", " \n", "1", "٣", "½1", "'s", "'ſ", "a ", "!a",
                                 "é", "\xE3\x80\x80", "\n  "}) {
    std::string text;
    while (text.size() < 3 * 64 * PreTokenStarts<Cl100kSplit>::kBlocks) text += unit;
    CAPTURE(unit);
    CHECK(starts_of<Cl100kSplit>(text) == Cl100kMatcher(text).starts());
  }
}
