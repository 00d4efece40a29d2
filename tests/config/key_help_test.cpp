#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include <nlohmann/json.hpp>

#include "config/file.h"
#include "config/key_table.h"
#include "core/files/input_file.h"
#include "core/files/json.h"
#include "support/catch.h"

using namespace olmo::config;
using olmo::Json;

namespace {

const std::filesystem::path kConfigs = std::filesystem::path(OLMO_SOURCE_DIR) / "configs";

/// Holds the text between the markers of a file to `text`; with OLMO_WRITE_GENERATED it writes it.
void check_generated(const std::filesystem::path& file, const std::string& begin,
                     const std::string& end, const std::string& text) {
  std::string whole = olmo::read_file(file);
  const auto from = begin.empty() ? 0 : whole.find(begin) + begin.size();
  const auto to = end.empty() ? whole.size() : whole.find(end, from);
  REQUIRE(to != std::string::npos);
  if (std::getenv("OLMO_WRITE_GENERATED") != nullptr) {
    whole.replace(from, to - from, text);
    std::ofstream(file, std::ios::binary) << whole;
    return;
  }
  INFO(file << " is stale: OLMO_WRITE_GENERATED=1 olmo_tests \"[generated]\" writes it");
  const bool same = whole.compare(from, to - from, text) == 0;
  CHECK(same);
}

/// Whether a value fits a schema of the few words that ours uses.
bool fits(const Json& value, const Json& schema, const Json& root) {
  if (schema.contains("$ref")) return fits(value, root["$defs"]["reference"], root);
  if (schema.contains("anyOf")) {
    for (const auto& one : schema["anyOf"])
      if (fits(value, one, root)) return true;
    return false;
  }
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json{schema["type"]};
    const auto is = [&](const std::string& type) {
      if (type == "integer") return value.is_number_integer();
      if (type == "number") return value.is_number();
      return type == value.type_name();
    };
    if (std::none_of(types.begin(), types.end(), is)) return false;
  }
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return false;
  if (schema.contains("pattern") && value.is_string() &&
      !std::regex_search(value.get<std::string>(),
                         std::regex(schema["pattern"].get<std::string>())))
    return false;
  if (value.is_array() && schema.contains("items"))
    for (const auto& item : value)
      if (!fits(item, schema["items"], root)) return false;
  if (!value.is_object() || !schema.contains("properties")) return true;
  for (const auto& [key, child] : value.items()) {
    if (!schema["properties"].contains(key)) return false;
    if (!fits(child, schema["properties"][key], root)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the table of keys in configs/README.md is that of the code", "[config][generated]") {
  check_generated(kConfigs / "README.md", "<!-- keys: begin -->\n", "<!-- keys: end -->",
                  key_table_markdown());
}

TEST_CASE("configs/schema.json is that of the code", "[config][generated]") {
  check_generated(kConfigs / "schema.json", "", "", olmo::json_text(config_schema(), 2) + "\n");
}

TEST_CASE("the schema takes every config that we ship, and no misspelt key or word", "[config]") {
  const Json schema = config_schema();
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs / "train")) {
    INFO(entry.path());
    const Json config = to_json(read_config_file(entry.path()).root);
    CHECK(fits(config, schema, schema));
  }
  for (const auto* bad :
       {R"({"model": {"n_headz": 4}})", R"({"optimizer": {"name": "sgd"}})", R"({"sed": 1})",
        R"({"activation_checkpointing": "all"})", R"({"save_interval": "often"})",
        R"({"max_duration": "2 weeks"})", R"({"model": 5})"}) {
    INFO(bad);
    CHECK_FALSE(fits(Json::parse(bad), schema, schema));
  }
  for (const auto* good : {"null", "\"fine_grained\"", "\"${run_name}\""})
    CHECK(fits({{"activation_checkpointing", Json::parse(good)}}, schema, schema));
  CHECK(fits(Json::parse(R"({"eval_interval": "${save_interval}", "load_path": null,
                             "wandb": {"name": "x"}, "$schema": "schema.json"})"),
             schema, schema));
}

TEST_CASE("the schema tells an editor what each key is", "[config]") {
  const Json schema = config_schema();
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  for (const auto& row : key_table()) {
    std::string place = "/properties/" + row.path;
    for (auto dot = place.find('.'); dot != std::string::npos; dot = place.find('.'))
      place.replace(dot, 1, "/properties/");
    INFO(row.path);
    const auto& at = schema.value(Json::json_pointer(place), Json());
    if (!at.contains("title")) {  // within a group of OLMo's that nothing here honours
      CHECK(row.absent.has_value());
      continue;
    }
    CHECK(at["title"] == row.path);
    CHECK(at["description"].get<std::string>().size() > 10);
    CHECK(at.contains("default") == !row.default_value.empty());
    for (const auto word : row.key.words)
      CHECK(at.dump().find("\"" + std::string(word) + "\"") != std::string::npos);
    for (const auto& example : at.value("examples", Json::array()))
      CHECK(fits(example, at, schema));
  }
}

TEST_CASE("help on a key says what it is, what it does and where it belongs", "[config]") {
  const auto help = key_help("model.n_kv_heads");
  for (const auto* part : {"model.n_kv_heads\n  Heads of keys and values", "integer or null",
                           "default   null", "identity. It decides what is computed",
                           "compared  Runs that differ in it cannot be compared. Another model.",
                           "in `model`, or model.n_kv_heads=VALUE"})
    CHECK(help.find(part) != std::string::npos);
  CHECK(key_help("optimizer.name").find("adamw, lionw") != std::string::npos);
  CHECK(key_help("wandb").find("ignored. ") != std::string::npos);
  const auto group = key_help("scheduler");
  CHECK(group.find("  scheduler.t_warmup ") != std::string::npos);
  CHECK(group.find("Default: 100.0.") != std::string::npos);
  CHECK_THROWS_WITH(key_help("model.n_headz"),
                    "help: `model.n_headz` is no key of a config; did you mean `model.n_heads`?");
}

TEST_CASE("a config for others states what OLMo's defaults would make another", "[config]") {
  const auto stated = Json::parse(
      with_unstated_keys(R"({"model": {"d_model": 8, "residual_dropout": 0.5}, "seed": 1})"));
  CHECK(stated == Json::parse(R"({"model": {"d_model": 8, "residual_dropout": 0.5,
                                  "attention_dropout": 0, "embedding_dropout": 0}, "seed": 1})"));
  for (const char* other : {R"({"seed":1})", R"({"model":5})", R"({"model":[8]})"})
    CHECK(with_unstated_keys(other) == other);
}

TEST_CASE("every row of the table is whole", "[config]") {
  for (const auto& row : key_table()) {
    INFO(row.path);
    const std::string help = row.key.help;
    CHECK_FALSE(help.empty());
    CHECK(help.back() != '.');
    CHECK_FALSE(std::string(row.key.rule.reason).empty());
    CHECK(find_key(row.path) == &row);  // no path twice
    CHECK_FALSE(key_help(row.path).empty());
    if (row.absent) CHECK((row.group || row.schema == "{}"));
  }
}

TEST_CASE("a key's rule holds for what is below it, and an unknown key is a confound", "[config]") {
  CHECK(rule_of("model.n_heads").mismatch == MismatchClass::kFatal);
  CHECK(rule_of("model.of_another_trainer").mismatch == MismatchClass::kFatal);
  CHECK(rule_of("data.datasets.label").mismatch == MismatchClass::kBenign);
  CHECK(rule_of("wandb.name").mismatch == MismatchClass::kBenign);
  CHECK(rule_of("fsdp.precision").mismatch == MismatchClass::kConfound);
  CHECK(rule_of("fsdp.sharding_strategy").mismatch == MismatchClass::kBenign);
  CHECK(rule_of("nobody_knows").mismatch == MismatchClass::kConfound);
}
