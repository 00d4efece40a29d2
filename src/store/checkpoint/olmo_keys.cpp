#include <cstdint>
#include <optional>
#include <string_view>

#include "store/checkpoint/safetensors.h"

namespace olmo::store {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Opcodes around the names: PROTO 4, FRAME; MEMOIZE after each; then TUPLE1, 2 or 3, MEMOIZE,
// NEWFALSE, TUPLE2, MEMOIZE, STOP.
constexpr std::string_view kHead = "\x80\x04\x95";
constexpr std::string_view kTuples = "\x85\x86\x87";
constexpr std::string_view kTail = "\x94\x89\x86\x94.";
constexpr char kMemoize = '\x94';
constexpr std::size_t kFrameLength = 8;
constexpr char kShortText = '\x8c';  // SHORT_BINUNICODE: one byte of length
constexpr char kText = 'X';          // BINUNICODE: four

std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8U) text += static_cast<char>(value & 0xFFU);
  return text;
}

std::string pickle(const std::vector<std::string>& names) {
  std::string body;
  for (const auto& name : names) {
    const bool is_short = name.size() < 256;
    body += is_short ? kShortText : kText;
    body += little_endian(name.size(), is_short ? 1 : 4) + name + kMemoize;
  }
  body += kTuples[names.size() - 1];
  body += kTail;
  return std::string(kHead) + little_endian(body.size(), kFrameLength) + body;
}

/// The text that is pickled at `at`, which moves behind it and its MEMOIZE; nothing: none is.
std::optional<std::string> unpickle_text(std::string_view bytes, std::size_t& at) {
  if (at >= bytes.size() || (bytes[at] != kShortText && bytes[at] != kText)) return std::nullopt;
  const std::size_t digits = bytes[at] == kShortText ? 1 : 4;
  ++at;
  if (digits > bytes.size() - at) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = digits; i-- > 0;)
    length = length << 8U | static_cast<std::uint8_t>(bytes[at + i]);
  at += digits;
  if (length >= bytes.size() - at) return std::nullopt;
  std::string text(bytes.substr(at, length));
  at += length + 1;
  return text;
}

std::string to_base64(const std::string& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8U | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? kAlphabet[bits >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : text) {
    const auto digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U | static_cast<std::uint32_t>(digit)) & 0xFFFFU;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xFFU);
  }
  return bytes;
}

}  // namespace

std::string encode_olmo_key(const std::string& name) { return to_base64(pickle({name})); }

std::vector<std::string> decode_olmo_path(const std::string& key) {
  const auto bytes = from_base64(key);
  if (!bytes) return {};
  std::vector<std::string> names;
  std::size_t at = kHead.size() + kFrameLength;
  while (names.size() < kTuples.size()) {
    auto name = unpickle_text(*bytes, at);
    if (!name) break;
    names.push_back(*std::move(name));
  }
  // The one place that knows the shape says whether it is this one.
  return !names.empty() && pickle(names) == *bytes ? names : std::vector<std::string>{};
}

std::string decode_olmo_key(const std::string& key) {
  const auto names = decode_olmo_path(key);
  return names.size() == 1 ? names.front() : key;
}

}  // namespace olmo::store
