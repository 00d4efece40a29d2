#include "data/pre_tokens.h"

#include <random>
#include <string>
#include <vector>

#include "data/utf8.h"
#include "support/catch.h"

namespace {

using olmo::data::PreTokenStarts;
using olmo::data::UnicodeTable;

const UnicodeTable& table() {
  static const UnicodeTable table;
  return table;
}

std::vector<std::size_t> starts_of(std::string_view text) {
  std::array<std::size_t, PreTokenStarts::kCapacity> some{};
  std::vector<std::size_t> all;
  PreTokenStarts splitter(table(), text, text.data() + text.size());
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
         next += olmo::data::decode_valid_utf8(text_.data() + next).size)
      last = next;
    return end == text_.size() || last == at ? end : last;
  }

  std::size_t run(std::size_t at, int kind) const {
    while (at < text_.size()) {
      const auto point = olmo::data::decode_valid_utf8(text_.data() + at);
      if (table().split_class(point.code) != kind) break;
      at += point.size;
    }
    return at;
  }

  std::string_view text_;
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
    CHECK(starts_of(text) == Matcher(text).starts());
  }
}

TEST_CASE("a split does not read past the end of its text", "[data]") {
  const std::string text = "  x 's";
  CHECK(starts_of(std::string_view(text).substr(0, 2)) == std::vector<std::size_t>{0});
  CHECK(starts_of(std::string_view(text).substr(0, 5)) == std::vector<std::size_t>{0, 1, 3});
  CHECK(starts_of("").empty());
}
