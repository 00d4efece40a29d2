#include "data/sidecar.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"

namespace olmo::data {
namespace {

std::optional<std::string> text_at(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return std::nullopt;
  return object[key].get<std::string>();
}

std::optional<std::uint64_t> number_at(const Json& object, const char* key) {
  if (!object.contains(key) || !object[key].is_number_unsigned()) return std::nullopt;
  return object[key].get<std::uint64_t>();
}

/// A key that is there says something: it is refused rather than passed over.
void check_types(const Json& facts, const std::string& path) {
  const auto refuse = [&](const char* key, const char* expected) {
    throw Error(ErrorKind::kInput, path + ": `" + key + "` must be " + expected + ", got " +
                                       facts[key].dump(-1, ' ', true).substr(0, 60));
  };
  if (facts.contains("dtype") && !facts["dtype"].is_string()) refuse("dtype", "uint16 or uint32");
  for (const char* key : {"tokens", "eos_token_id"}) {
    if (facts.contains(key) && !facts[key].is_number_unsigned() && !facts[key].is_null())
      refuse(key, "a whole number from 0");
  }
}

}  // namespace

std::optional<Sidecar> read_sidecar(const std::filesystem::path& token_file) {
  const auto path = sidecar_path(token_file);
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Json facts = read_json_file(path);
  if (!facts.is_object())
    throw Error(ErrorKind::kInput,
                path.string() + ": is not a sidecar of a token file: expected a JSON object");
  check_types(facts, path.string());
  Sidecar sidecar;
  if (const auto dtype = text_at(facts, "dtype")) {
    if (*dtype != "uint16" && *dtype != "uint32")
      throw Error(ErrorKind::kInput,
                  path.string() + ": dtype is '" + *dtype + "', expected uint16 or uint32");
    sidecar.dtype = parse_token_dtype(*dtype);
  }
  sidecar.tokens = number_at(facts, "tokens");
  sidecar.sha256 = text_at(facts, "sha256");
  if (const auto eos = number_at(facts, "eos_token_id");
      eos && *eos <= std::numeric_limits<std::uint32_t>::max()) {
    sidecar.eos_token_id = static_cast<std::uint32_t>(*eos);
  }
  if (facts.contains("tokenizer")) {
    sidecar.tokenizer_path = text_at(facts["tokenizer"], "path");
    sidecar.tokenizer_sha256 = text_at(facts["tokenizer"], "sha256");
  }
  return sidecar;
}

}  // namespace olmo::data
