#include "data/tokenizer/unicode_table.h"

#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"

using olmo::data::append_nfc;
using olmo::data::check_text;
using olmo::data::UnicodeTable;

TEST_CASE(
    "NFC composes, reorders and leaves newer code points alone as the tokenizers library does",
    "[data]") {
  const UnicodeTable table;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"e\u0301", "\u00e9"},
      {"xe\u0301y", "x\u00e9y"},
      {"a\u0323\u0302", "\u1ead"},
      {"a\u0302\u0323", "\u1ead"},         // marks are put in canonical order first
      {"\u212b\u2126", "\u00c5\u03a9"},    // singletons
      {"\u0958", "\u0915\u093c"},          // a composition exclusion
      {"\u1100\u1161\u11a8", "\uac01"},    // Hangul
      {"\u00e9\u0323", "\u1eb9\u0301"},    // a composed letter is taken apart for a mark below
      {"\u0301a", "\u0301a"},              // a mark with nothing before it
      {"a\u0315\u1df6", "a\u0315\u1df6"},  // U+1DF6 is newer than the library's tables
      {"\U00011935\U00011930", "\U00011935\U00011930"},  // so is this pair
      {"\U000105d2\u0307", "\U000105d2\u0307"},
  };
  for (const auto& [text, expected] : cases) {
    std::string out = "before ";
    append_nfc(table, text, out);
    CHECK(out == "before " + expected);
  }
}

TEST_CASE("the quick check passes text that NFC leaves as it is", "[data]") {
  const UnicodeTable table;
  CHECK(check_text(table, "plain text, longer than a word of eight bytes").nfc);
  CHECK(check_text(table,
                   "caf\u00e9 \u65e5\u672c \u0440\u0443\u0441\u0441\u043a\u0438\u0439 \U0001f642")
            .nfc);
  CHECK_FALSE(check_text(table, "cafe\u0301").nfc);
  CHECK_FALSE(check_text(table, "\u212b").nfc);
}
