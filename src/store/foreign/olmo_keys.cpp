#include <cstdint>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "store/foreign/pickle.h"
#include "store/foreign/safetensors.h"

namespace olmo::store {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr char kPickleMark = '\x80';  // PROTO, with which every pickle begins

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

std::vector<std::string> decode_olmo_path(const std::string& key) {
  const auto bytes = from_base64(key);
  if (!bytes || !bytes->starts_with(kPickleMark)) return {};
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
