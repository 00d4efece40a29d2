#include "config/key_table.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "config/keys.h"
#include "config/other_trainers.h"
#include "core/files/json.h"
#include "core/text/text.h"

namespace olmo::config {
namespace {

struct TypeFacts {
  std::string text;
  Json schema;
};

TypeFacts facts_of(const bool&) { return {"true or false", {{"type", "boolean"}}}; }
TypeFacts facts_of(const std::int64_t&) { return {"integer", {{"type", "integer"}}}; }
TypeFacts facts_of(const std::uint64_t&) {
  return {"integer", {{"type", "integer"}, {"minimum", 0}}};
}
TypeFacts facts_of(const double&) { return {"number", {{"type", "number"}}}; }
TypeFacts facts_of(const std::string&) { return {"text", {{"type", "string"}}}; }
TypeFacts facts_of(const Precision&) { return facts_of(std::string()); }
TypeFacts facts_of(const std::array<double, 2>&) {
  return {"two numbers",
          {{"type", "array"}, {"items", {{"type", "number"}}}, {"minItems", 2}, {"maxItems", 2}}};
}
TypeFacts facts_of(const std::vector<std::string>&) {
  return {"list of texts", {{"type", {"array", "null"}}, {"items", {{"type", "string"}}}}};
}
TypeFacts facts_of(const std::map<std::string, std::vector<std::string>>&) {
  return {"lists of texts by label",
          {{"type", {"object", "null"}},
           {"additionalProperties", facts_of(std::vector<std::string>()).schema}}};
}
TypeFacts facts_of(const optim::Duration&) {
  return {"steps, tokens or epochs",
          {{"type", {"integer", "string"}}, {"pattern", "^[0-9][0-9._eE+]* *(T|ep)?$"}}};
}
TypeFacts facts_of(const RawJson&) {
  return {"list of maps",
          {{"type", {"array", "null"}}, {"items", {{"type", "object"}, {"required", {"label"}}}}}};
}
template <class T>
TypeFacts facts_of(const std::optional<T>&) {
  const TypeFacts facts = facts_of(T{});
  return {facts.text + " or null", {{"anyOf", {facts.schema, {{"type", "null"}}}}}};
}

Json schema_of(const Key& key, Json schema) {
  const bool or_null = schema.contains("anyOf");
  if (!key.words.empty()) (or_null ? schema["anyOf"][0] : schema)["enum"] = key.words;
  // A value may be written as a reference to another.
  if (schema.value("type", Json()) == "string" && key.words.empty()) return schema;
  if (or_null) {
    schema["anyOf"].push_back({{"$ref", "#/$defs/reference"}});
    return schema;
  }
  return {{"anyOf", {std::move(schema), {{"$ref", "#/$defs/reference"}}}}};
}

/// Makes the rows: the visitor of visit_keys.
class TableBuilder {
 public:
  TableBuilder() {
    config_.data.instance_filter.emplace();  // so that their keys have defaults
    config_.model.rope_scaling.emplace();
    defaults_ = to_json(config_);
    visit_keys(std::as_const(config_), *this);
  }

  template <class T>
  void operator()(const Key& key, const T& value) {
    KeyRow row{.path = prefix_ + key.name, .key = key};
    if constexpr (requires(TableBuilder & builder) { visit_keys(value, builder); }) {
      row.group = true;
      row.type = "group";
      add_group(std::move(row), value);
    } else if constexpr (requires(TableBuilder & builder) { visit_keys(*value, builder); }) {
      row.group = true;
      row.type = "group or null";
      row.null_by_default = std::is_same_v<T, decltype(data::DataConfig::instance_filter)> ||
                            std::is_same_v<T, decltype(model::ModelConfig::rope_scaling)>;
      add_group(std::move(row), *value);
    } else {
      const TypeFacts facts = facts_of(value);
      row.type = facts.text;
      row.default_value = at(row.path).dump();
      row.schema = schema_of(key, facts.schema).dump();
      rows_.push_back(std::move(row));
    }
  }

  void operator()(const Key& key, const Absent& absent) {
    rows_.push_back({.path = prefix_ + key.name,
                     .key = key,
                     .absent = absent,
                     .group = !absent.children.empty(),
                     .schema = "{}"});
  }

  std::vector<KeyRow> take() { return std::move(rows_); }

 private:
  template <class T>
  void add_group(KeyRow row, const T& value) {
    const std::string outer = std::exchange(prefix_, row.path + ".");
    rows_.push_back(std::move(row));
    visit_keys(value, *this);
    prefix_ = outer;
  }

  [[nodiscard]] const Json& at(const std::string& path) const {
    return defaults_.at(Json::json_pointer(pointer_to(path)));
  }

  TrainConfig config_;
  Json defaults_;
  std::string prefix_;
  std::vector<KeyRow> rows_;
};

std::string parent_of(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string leaf_of(const std::string& path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

const std::vector<KeyRow>& key_table() {
  static const std::vector<KeyRow> kRows = TableBuilder().take();
  return kRows;
}

const KeyRow* find_key(std::string_view path) {
  const auto& rows = key_table();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const KeyRow& row) { return row.path == path; });
  return found == rows.end() ? nullptr : &*found;
}

std::string pointer_to(std::string_view path) {
  std::string pointer = "/" + std::string(path);
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return pointer;
}

std::string unstated_value(const KeyRow& row) {
  if (!row.absent) return row.default_value;
  const auto accepted = split_words(row.absent->accepted);
  if (accepted.size() != 1 || accepted[0] == "*") return "";
  return Json::accept(accepted[0]) ? std::string(accepted[0]) : Json(accepted[0]).dump();
}

std::string with_unstated_keys(const std::string& config) {
  Json stated = Json::parse(config);
  for (const auto& row : key_table()) {
    if (!row.absent || row.key.olmo_default == nullptr) continue;
    const Json::json_pointer place(pointer_to(row.path)), group = place.parent_pointer();
    if (stated.contains(group) && stated[group].is_object() && !stated.contains(place))
      stated[place] = Json::parse(unstated_value(row));
  }
  return json_text(stated);
}

std::optional<std::string> nearest_key(const std::string& path) {
  std::vector<std::string> siblings, leaves;
  for (const auto& row : key_table()) {
    if (leaf_of(row.path) == leaf_of(path)) return row.path;
    if (parent_of(row.path) == parent_of(path)) siblings.push_back(leaf_of(row.path));
    leaves.push_back(leaf_of(row.path));
  }
  if (const auto name = nearest(leaf_of(path), siblings))
    return parent_of(path).empty() ? *name : parent_of(path) + "." + *name;
  const auto name = nearest(leaf_of(path), leaves);
  if (!name) return std::nullopt;
  const auto at = std::find(leaves.begin(), leaves.end(), *name) - leaves.begin();
  return key_table()[static_cast<std::size_t>(at)].path;
}

KeyRule rule_of(std::string_view path) {
  for (std::string_view place = path;;) {
    if (const auto* row = find_key(place)) return row->key.rule;
    const auto dot = place.rfind('.');
    if (dot == std::string_view::npos) break;
    place = place.substr(0, dot);
  }
  return rule_of_other_trainer(path).value_or(kTraining);
}

bool is_of_drawing(std::string_view path) {
  return std::string_view(rule_of(path).reason) == kDrawn.reason;
}

}  // namespace olmo::config
