#include <cstdint>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "store/checkpoint/pickle.h"
#include "store/checkpoint/safetensors.h"

namespace olmo::store {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Opcodes around the name: PROTO 4, FRAME; MEMOIZE, TUPLE1, MEMOIZE, NEWFALSE, TUPLE2, MEMOIZE,
// STOP.
constexpr std::string_view kHead = "\x80\x04\x95";
constexpr std::string_view kTail = "\x94\x85\x94\x89\x86\x94.";
constexpr std::size_t kFrameLength = 8;
constexpr char kShortText = '\x8c';  // SHORT_BINUNICODE: one byte of length
constexpr char kText = 'X';          // BINUNICODE: four

std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8U) text += static_cast<char>(value & 0xFFU);
  return text;
}

std::string pickle(const std::string& name) {
  const bool is_short = name.size() < 256;
  std::string body(1, is_short ? kShortText : kText);
  body += little_endian(name.size(), is_short ? 1 : 4) + name + std::string(kTail);
  return std::string(kHead) + little_endian(body.size(), kFrameLength) + body;
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

std::string encode_olmo_key(const std::string& name) { return to_base64(pickle(name)); }

std::vector<std::string> decode_olmo_path(const std::string& key) {
  const auto bytes = from_base64(key);
  if (!bytes || !bytes->starts_with(kHead.front())) return {};
  try {
    const Pickle pickle(*bytes, "key");
    const PickleValue& root = pickle.root();
    const auto is_list = [](const PickleValue& value) {
      return value.kind == PickleValue::Kind::kList;
    };
    if (!is_list(root) || root.items.size() != 2 || !is_list(*root.items.front())) return {};
    std::vector<std::string> names;
    for (const PickleValue* name : root.items.front()->items) {
      if (name->kind == PickleValue::Kind::kText) names.emplace_back(name->text);
      if (name->kind == PickleValue::Kind::kInteger) names.push_back(std::to_string(name->integer));
    }
    return names;
  } catch (const Error&) {  // a text that is in base64 by chance
    return {};
  }
}

std::string decode_olmo_key(const std::string& key) {
  const auto names = decode_olmo_path(key);
  return names.size() == 1 ? names.front() : key;
}

}  // namespace olmo::store
