#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "data/tokenizer/unicode_table.h"

namespace olmo::data {

/// What one pass over a document finds out.
struct TextCheck {
  std::size_t bad_offset = std::string_view::npos;  ///< first byte that is not UTF-8
  bool nfc = true;                                  ///< false if NFC might change the text
};

/// Checks UTF-8 and quick-checks NFC; ASCII costs almost nothing.
TextCheck check_text(const UnicodeTable& table, std::string_view text);

/// Appends the NFC of `text` (well-formed UTF-8) to `out`, as the `tokenizers` library's normalizer
/// gives it: code points newer than its tables are left alone. Composition itself is utf8proc's.
void append_nfc(const UnicodeTable& table, std::string_view text, std::string& out);

}  // namespace olmo::data
