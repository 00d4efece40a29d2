#include "data/tokenizer/unicode_table.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <utf8proc.h>

#include "core/error.h"
#include "core/text/text.h"

namespace olmo::data {
namespace {

std::size_t skip_ascii(std::string_view text, std::size_t at) {
  while (at + 32 <= text.size()) {
    std::uint64_t words[4];
    std::memcpy(words, text.data() + at, sizeof words);
    if (((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080ULL) != 0) break;
    at += 32;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

/// NFC of a short stretch by utf8proc, whose tables may be newer than the library's: the caller
/// passes only code points that both know.
void append_composed(std::string_view text, std::string& out) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  std::vector<utf8proc_int32_t> codes(text.size() * 3 +
                                      4);  // a code point of two bytes or more gives at most four
  auto count = utf8proc_decompose(bytes, size, codes.data(),
                                  static_cast<utf8proc_ssize_t>(codes.size()), options);
  OLMO_CHECK(count >= 0 && static_cast<std::size_t>(count) <= codes.size());
  count = utf8proc_normalize_utf32(codes.data(), count, options);
  OLMO_CHECK(count >= 0);
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    append_utf8(out, static_cast<std::uint32_t>(codes[static_cast<std::size_t>(i)]));
  }
}

}  // namespace

UnicodeTable::UnicodeTable() {
  constexpr std::uint32_t kCodes = 0x110000;
  std::vector<std::uint8_t> flags;
  flags.reserve(kCodes);
  std::uint8_t of_run = 0;
  std::uint32_t distance = 0;
  for (const char c : unicode_runs()) {
    if (c == '\n') continue;
    if (c <= '9' || c >= 'a') {  // a digit
      distance = distance * 16 + static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
      continue;
    }
    flags.resize(flags.size() + distance, of_run);
    of_run = static_cast<std::uint8_t>(c - 'A');
    distance = 0;
  }
  flags.resize(kCodes, of_run);
  std::map<std::string, std::uint16_t> known;
  std::string block(1U << kShift, '\0');
  for (std::uint32_t code = 0; code < kCodes; ++code) {
    block[code & kLowMask] = static_cast<char>(flags[code]);
    if ((code & kLowMask) != kLowMask) continue;
    const auto [entry, is_new] = known.try_emplace(block, static_cast<std::uint16_t>(known.size()));
    if (is_new) blocks_.insert(blocks_.end(), block.begin(), block.end());
    block_of_.push_back(entry->second);
  }
}

TextCheck check_text(const UnicodeTable& table, std::string_view text) {
  TextCheck check;
  for (std::size_t at = skip_ascii(text, 0); at < text.size();) {
    const CodePoint point = decode_utf8(text.substr(at, 4));
    if (point.code == kBadUtf8) {
      check.bad_offset = at;
      return check;
    }
    if ((table.flags(point.code) & kNfcUnsafe) != 0) check.nfc = false;
    at += point.size;
    if (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) at = skip_ascii(text, at);
  }
  return check;
}

void append_nfc(const UnicodeTable& table, std::string_view text, std::string& out) {
  std::size_t done = 0;   // text before this is in `out`
  std::size_t start = 0;  // the last code point that is safe to begin a stretch with
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_valid_utf8(text.data() + at);
    if ((table.flags(point.code) & kNfcUnsafe) == 0) {
      start = at;
      at += point.size;
      continue;
    }
    const bool joins =
        start < at && (table.flags(decode_valid_utf8(text.data() + start).code) & kNfcJoins) != 0;
    const std::size_t stretch = joins && start >= done ? start : at;
    out.append(text, done, stretch - done);
    std::size_t end = at;
    while (end < text.size()) {
      const CodePoint next = decode_valid_utf8(text.data() + end);
      if ((table.flags(next.code) & kNfcUnsafe) == 0) break;
      end += next.size;
    }
    append_composed(text.substr(stretch, end - stretch), out);
    done = start = at = end;
  }
  out.append(text, done);
}

}  // namespace olmo::data
