#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "config/key_table.h"
#include "core/error.h"
#include "core/text/text.h"
#include "data/public/tokenizers.h"

namespace olmo::config {
namespace {

struct EffectText {
  const char* word;
  const char* sentence;
};

EffectText text_of(Effect effect) {
  constexpr std::array<EffectText, 7> kTexts = {
      {{"identity", "It decides what is computed, so it belongs to the experiment digest."},
       {"placement", "It says where something lies or what computes: the same bits."},
       {"limit", "It decides whether a process starts and when it ends: the same bits."},
       {"record", "It decides what is kept and shown: the same bits."},
       {"ignored", "It is accepted and not honoured."},
       {"refused", "Any other value keeps a run from starting."},
       {"precision",
        "It decides, with `precision`, what is rounded to bf16; it changes nothing in fp32."}}};
  return kTexts.at(static_cast<std::size_t>(effect));
}

const char* text_of(MismatchClass mismatch) {
  constexpr std::array<const char*, 3> kTexts = {
      "Runs that differ in it cannot be compared.",
      "Runs that differ in it can be compared, but are never called EQUIVALENT.",
      "Runs that differ in it can be compared."};
  return kTexts.at(static_cast<std::size_t>(mismatch));
}

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z' && text.find('_') == std::string::npos)
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text + ".";
}

/// What an absent key has instead of a default: the values that can be given.
std::string accepted_by(const KeyRow& row) {
  std::string text;
  for (const auto word : split_words(row.absent->accepted))
    text += (text.empty() ? "" : " or ") + std::string(word);
  return text == "*" ? "" : text;
}

bool is_below(const KeyRow& row, const std::string& group) {
  return row.path.size() > group.size() + 1 && row.path.starts_with(group + ".") &&
         row.path.find('.', group.size() + 1) == std::string::npos;
}

std::string keys_of_group(const KeyRow& group) {
  std::string text;
  for (const auto& row : key_table()) {
    if (!is_below(row, group.path) || row.absent) continue;
    std::string line = "  " + row.path;
    line.resize(std::max<std::size_t>(line.size() + 2, 44), ' ');
    text += line + sentence(row.key.help) +
            (row.group ? "" : " Default: " + row.default_value + ".") + "\n";
  }
  return text.empty() ? "" : "\nkeys\n" + text;
}

std::string words_of(const KeyRow& row) {
  std::string text;
  for (const auto word : row.key.words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

std::string where_of(const KeyRow& row) {
  const auto dot = row.path.rfind('.');
  const std::string in =
      dot == std::string::npos ? "at the top of a config" : "in `" + row.path.substr(0, dot) + "`";
  return in + ", or " + row.path + "=VALUE behind `olmo-harness train CONFIG`";
}

/// Values that an editor offers where neither a list of words nor the default says enough.
Json examples_of(const KeyRow& row) {
  if (row.path == "tokenizer.identifier") return data::tokenizer_names();
  if (row.path == "max_duration") return {1000, "2e12T", "2ep"};
  if (row.path == "data.paths") return Json::array({Json::array({"corpus.npy"})});
  if (row.path == "load_path") return {"runs/a/step1000"};
  if (row.path == "load_weights") return {"runs/a", "OLMo-1B-hf"};
  return Json::array();
}

}  // namespace

std::string key_help(const std::string& path) {
  const KeyRow* row = find_key(path);
  if (row == nullptr) {
    const auto meant = nearest_key(path);
    throw Error(ErrorKind::kUsage, "help: `" + path + "` is no key of a config" +
                                       (meant ? "; did you mean `" + *meant + "`?" : ""));
  }
  const auto [effect, mismatch, reason] = row->key.rule;
  std::string text = row->path + "\n  " + sentence(row->key.help) + "\n\n";
  const auto line = [&](std::string name, const std::string& what) {
    name.resize(10, ' ');
    if (!what.empty()) text += "  " + name + what + "\n";
  };
  line("type", row->type);
  line("values", row->absent ? accepted_by(*row) : words_of(*row));
  line("default", row->default_value);
  line("effect", std::string(text_of(effect).word) + ". " + text_of(effect).sentence);
  line("compared", std::string(text_of(mismatch)) + " " + reason);
  line("where", where_of(*row));
  return text + keys_of_group(*row);
}

std::string key_table_markdown() {
  std::string text =
      "| key | type | default | effect | two runs differ | meaning |\n"
      "|---|---|---|---|---|---|\n";
  const auto escaped = [](std::string cell) {
    for (auto at = cell.find('|'); at != std::string::npos; at = cell.find('|', at + 2))
      cell.insert(at, "\\");
    return cell;
  };
  for (const auto& row : key_table()) {
    const auto [effect, mismatch, reason] = row.key.rule;
    const char* difference = mismatch == MismatchClass::kFatal      ? "not comparable"
                             : mismatch == MismatchClass::kConfound ? "confound"
                                                                    : "";
    const std::string value = row.absent ? accepted_by(row) : row.default_value;
    const std::string words = words_of(row);
    text +=
        "| `" + row.path + "` | " + row.type + " | " + (value.empty() ? "" : "`" + value + "`") +
        " | " + text_of(effect).word + " | " + difference + " | " +
        escaped(sentence(row.key.help) + (words.empty() ? "" : " One of " + words + ".")) + " |\n";
  }
  return text;
}

Json config_schema() {
  const auto group = [] {
    return Json{
        {"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  };
  Json schema = group();
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "A config of olmo-harness train";
  schema["$defs"]["reference"] = {{"type", "string"}, {"pattern", "\\$\\{.+\\}"}};
  for (const auto& row : key_table()) {
    if (row.absent && row.path.find('.') != std::string::npos && row.absent->children.empty() &&
        find_key(row.path.substr(0, row.path.rfind('.')))->absent)
      continue;  // told with its group
    std::string place = "/properties/";
    for (const char c : row.path)
      place += c == '.' ? std::string("/properties/") : std::string(1, c);
    Json value = row.group ? group() : Json::parse(row.schema);
    if (row.absent) {
      for (const auto child : split_words(row.absent->children))
        value["properties"][std::string(child)] = Json::object();
      if (row.group) value["type"] = {"object", "boolean", "null"};
    } else if (row.type.ends_with("null") && row.group) {
      value["type"] = {"object", "null"};
    }
    value["description"] = sentence(row.key.help) + " (" + text_of(row.key.rule.effect).word + ")";
    value["title"] = row.path;
    if (!row.default_value.empty()) value["default"] = Json::parse(row.default_value);
    if (auto examples = examples_of(row); !examples.empty())
      value["examples"] = std::move(examples);
    schema[Json::json_pointer(place)] = std::move(value);
  }
  return schema;
}

}  // namespace olmo::config
