#include "data/tokenizer/added_tokens.h"

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "support/catch.h"

using olmo::Json;
using olmo::data::AddedToken;
using olmo::data::AddedTokenMatcher;
using olmo::data::UnicodeTable;

namespace {

/// Its ids count from 1, in the order of the tokens.
AddedTokenMatcher matcher_of(const UnicodeTable& table, const Json& tokens) {
  std::vector<AddedToken> added;
  for (const auto& token : tokens) {
    added.push_back({.id = static_cast<std::uint32_t>(added.size() + 1),
                     .content = token["content"].get<std::string>(),
                     .single_word = token["single_word"].get<bool>(),
                     .lstrip = token["lstrip"].get<bool>(),
                     .rstrip = token["rstrip"].get<bool>(),
                     .normalized = false});
  }
  return {table, std::move(added)};
}

/// What lies between tokens as text, of tokens the id.
std::string shown(const Json& parts) {
  std::string text;
  for (const auto& part : parts) text += "[" + (part[1].is_null() ? part[0] : part[1]).dump() + "]";
  return text;
}

}  // namespace

TEST_CASE("added tokens are found where the tokenizers library finds them", "[data]") {
  const UnicodeTable table;
  const auto cases = olmo::read_json_file(std::string(OLMO_TEST_DATA) + "/data/added_tokens.json");
  REQUIRE(cases.size() == 60);
  for (const auto& one : cases) {
    CAPTURE(one["tokens"].dump(), one["text"].dump());
    const auto text = one["text"].get<std::string>();
    std::vector<AddedTokenMatcher::Part> parts;
    matcher_of(table, one["tokens"]).split(text, parts);
    Json ours = Json::array();
    for (const auto& part : parts)
      ours.push_back({std::string(part.text), part.is_token ? Json(part.id) : Json()});
    CHECK(shown(ours) == shown(one["parts"]));
  }
}
