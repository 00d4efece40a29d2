#include "data/tokenizer/byte_alphabet.h"

#include "core/text.h"

namespace olmo::data {

ByteAlphabet::ByteAlphabet() {
  byte_of_.fill(-1);
  std::uint32_t next = 256;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    code_of_[byte] = printable ? byte : next++;
    byte_of_[code_of_[byte]] = static_cast<int>(byte);
  }
}

std::string ByteAlphabet::character(std::uint8_t byte) const {
  std::string text;
  append_utf8(text, code_of_[byte]);
  return text;
}

std::optional<std::string> ByteAlphabet::bytes_of(std::string_view token) const {
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const CodePoint point = decode_utf8(token.substr(at, 4));
    if (point.code >= kCodes || byte_of_[point.code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte_of_[point.code]));
    at += point.size;
  }
  return bytes;
}

}  // namespace olmo::data
