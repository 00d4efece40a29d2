// Rendering, ids, bookkeeping, scores and metrics of the eight tasks against OLMo's evaluator and
// lm-eval: OLMO_GOLDEN_DIR names the directory of golden values, which has eval/, and beside it
// tokenizers/. Needs the fetched data ($OLMO_DATA_DIR, or `olmo-harness data fetch`).
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "data/public/fetch.h"
#include "eval/hash_model.h"
#include "eval/load_task.h"
#include "eval/rank_classification.h"
#include "eval/scoring.h"
#include "eval/task_catalog.h"

using namespace olmo;
using namespace olmo::eval;

namespace {

using Tokens = std::vector<std::uint32_t>;
namespace fs = std::filesystem;

constexpr const char* kGoldenNames[] = {"arc_easy",    "arc_challenge", "boolq", "hellaswag",
                                        "openbook_qa", "piqa",          "sciq",  "winogrande"};

std::string task_name(const std::string& golden) {
  return golden == "openbook_qa" ? "openbookqa" : golden;
}

fs::path data_folder() {
  const char* folder = std::getenv("OLMO_DATA_DIR");
  return folder != nullptr ? fs::path(folder) : data::default_data_folder();
}

bool has_data() {
  if (fs::exists(data::evaluation_data_folder(data_folder()))) return true;
  WARN("no evaluation data under " << data_folder() << ": run `olmo-harness data fetch`");
  return false;
}

std::vector<LoadedTask> load(const std::vector<std::string>& names, const std::string& convention,
                             std::optional<std::int64_t> limit) {
  std::vector<LoadedTask> loaded;
  for (const Task& task : load_catalog().resolve(names, convention, data_folder()))
    loaded.push_back(load_task(task, limit));
  return loaded;
}

std::vector<EncodedExample> encode(const LoadedTask& loaded, const data::Tokenizer& tokenizer,
                                   const EncodingOptions& options) {
  std::vector<const Example*> examples;
  for (const auto& example : loaded.examples) examples.push_back(&example);
  return encode_examples(loaded.task, examples, tokenizer, options);
}

Tokens joined(const Json& a, const Json& b) {
  Tokens tokens = a.get<Tokens>();
  const Tokens tail = b.get<Tokens>();
  tokens.insert(tokens.end(), tail.begin(), tail.end());
  return tokens;
}

std::vector<Json> read_lines(const fs::path& path) {
  std::ifstream file(path);
  std::vector<Json> records;
  for (std::string line; std::getline(file, line);) records.push_back(Json::parse(line));
  REQUIRE(!records.empty());
  return records;
}

void check_row(OptionRow& row, const Json& record) {
  CHECK(row.label == record.at("label").get<std::int64_t>());
  CHECK(row.ctx_tokens == record.at("ctx_len").get<std::int64_t>());
  CHECK(row.cont_tokens == record.at("cont_len").get<std::int64_t>());
  CHECK(row.cont_chars == record.at("cont_chars").get<std::int64_t>());
  CHECK(row.cont_bytes == record.at("cont_bytes").get<std::int64_t>());
}

double score(const char* name, const OptionRow& row) { return *find_score(name).of(row); }

void check_scores(const OptionRow& row, const Json& record) {
  const auto close = [](const Json& wanted) {
    return Approx(wanted.get<double>()).epsilon(1e-6).margin(1e-12);
  };
  const Json& icl = record.at("icl");
  CHECK(score("sum", row) == close(icl.at("acc")));
  CHECK(score("per_char", row) == close(icl.at("len_norm")));
  CHECK(score("pmi_olmo", row) == close(icl.at("pmi_dc")));
  CHECK(score("ce_loss", row) == close(icl.at("ce_loss")));
  CHECK(score("bpb", row) == close(icl.at("bpb")));
  CHECK(score("per_byte", row) == close(record.at("per_byte")));
  CHECK(score("per_token", row) == close(record.at("per_token")));
  CHECK(score("pmi", row) == close(record.at("pmi_difference")));
}

// Metrics of the rows as if the label were `label` (none: their own).
double metric_of(const LoadedTask& loaded, std::vector<OptionRow> rows, const std::string& name,
                 std::optional<std::int64_t> label = {}) {
  Task task = loaded.task;
  task.metrics = {{"acc", "sum"}, {"len_norm", "per_char"}, {"pmi_dc", "pmi_olmo"},
                  {"bpb", "bpb"}, {"ce_loss", "ce_loss"},   {"acc_norm", "per_char"}};
  if (label)
    for (auto& row : rows) row.label = *label;
  for (const auto& metric : aggregate(task, rows))
    if (metric.metric == name) return metric.value;
  FAIL("no " << name);
  return 0;
}

struct Goldens {
  fs::path root;
  data::Tokenizer tokenizer;
};

std::optional<Goldens> goldens() {
  const char* root = std::getenv("OLMO_GOLDEN_DIR");
  if (root == nullptr || !has_data()) return {};
  return Goldens{fs::path(root) / "eval",
                 data::Tokenizer::load(fs::path(root).parent_path() /
                                       "tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json")};
}

}  // namespace

TEST_CASE("requests, scores and metrics of OLMo's evaluator", "[.golden][eval-golden]") {
  const auto golden = goldens();
  if (!golden) return;
  const Json summary = read_json_file(golden->root / "summary.json");
  for (const std::string name : kGoldenNames) {
    INFO(name);
    const LoadedTask loaded = load({task_name(name)}, "olmo", 64).at(0);
    const auto encoded = encode(loaded, golden->tokenizer, {});
    std::vector<OptionRow> rows;
    for (const Json& record : read_lines(golden->root / (name + ".jsonl"))) {
      const EncodedExample& example = encoded.at(record.at("doc_id").get<std::size_t>());
      const auto option = record.at("cont_id").get<std::size_t>();
      INFO(record.dump());
      const auto& sequences = example.group.sequences;
      CHECK(sequences.at(option).tokens == joined(record.at("ctx_ids"), record.at("cont_ids")));
      REQUIRE(example.unconditional.at(option).has_value());
      CHECK(sequences.at(*example.unconditional[option]).tokens ==
            joined(record.at("dc_ids"), record.at("cont_ids")));
      OptionRow row = example.rows.at(option);
      check_row(row, record);
      row.logprob = record.at("sum_logprob");
      row.unconditional_logprob = record.at("dc_sum_logprob").get<double>();
      row.unconditional_logit_sum = record.at("dc_sum_raw_logit").get<double>();
      check_scores(row, record);
      rows.push_back(row);
    }
    const Json& wanted = summary.at("tasks").at(name).at("metrics");
    for (const char* metric : {"acc", "len_norm", "pmi_dc"})
      CHECK(metric_of(loaded, rows, metric) == wanted.at(metric).get<double>());
    // On a task with several continuations ICLMetric averages the costs of the first.
    for (const char* metric : {"ce_loss", "bpb"})
      CHECK(metric_of(loaded, rows, metric, 0) ==
            Approx(wanted.at(metric).get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("requests and metrics of OLMo's rendered tasks", "[.golden][eval-golden]") {
  const auto golden = goldens();
  if (!golden) return;
  const Json summary = read_json_file(golden->root / "summary.json");
  for (const std::string name : kGoldenNames) {
    INFO(name);
    const LoadedTask loaded = load({task_name(name)}, "oe", 64).at(0);
    const auto encoded = encode(loaded, golden->tokenizer, {});
    std::vector<OptionRow> rows;
    for (const Json& record : read_lines(golden->root / (task_name(name) + "_rc_0shot.jsonl"))) {
      const EncodedExample& example = encoded.at(record.at("doc_id").get<std::size_t>());
      const auto option = record.at("cont_id").get<std::size_t>();
      INFO(record.dump());
      CHECK(example.group.sequences.at(option).tokens ==
            joined(record.at("ctx_ids"), record.at("cont_ids")));
      OptionRow row = example.rows.at(option);
      check_row(row, record);
      row.logprob = record.at("sum_logprob");
      rows.push_back(row);
    }
    const Json& wanted = summary.at("tasks").at(name).at("oe_eval").at("results");
    for (const char* metric : {"acc", "len_norm"}) {
      if (!wanted.contains(metric)) continue;
      for (const auto& [key, value] : wanted.at(metric).at("metrics").items())
        CHECK(metric_of(loaded, rows, key) == value.get<double>());
    }
    for (const char* metric : {"ce_loss", "bpb"})
      CHECK(metric_of(loaded, rows, metric) ==
            Approx(wanted.at(metric).at("metrics").at(metric).get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("requests and metrics of lm-eval", "[.golden][eval-golden]") {
  const auto golden = goldens();
  if (!golden) return;
  const Json summary = read_json_file(golden->root / "lm_eval/summary.json");
  for (const std::string name : kGoldenNames) {
    INFO(name);
    const LoadedTask loaded = load({task_name(name)}, "lm-eval", 64).at(0);
    const auto encoded = encode(loaded, golden->tokenizer, {.prefix_token = 50279});
    std::vector<OptionRow> rows;
    for (const Json& record : read_lines(golden->root / "lm_eval" / (name + ".jsonl"))) {
      const EncodedExample& example = encoded.at(record.at("doc_id").get<std::size_t>());
      const auto option = record.at("cont_id").get<std::size_t>();
      INFO(record.dump());
      CHECK(example.group.sequences.at(option).tokens ==
            joined(record.at("ctx_ids"), record.at("cont_ids")));
      OptionRow row = example.rows.at(option);
      row.logprob = record.at("sum_logprob");
      rows.push_back(row);
    }
    const Json& wanted = summary.at("tasks").at(name);
    for (const char* metric : {"acc", "acc_norm"})
      if (!wanted.at(metric).is_null())
        CHECK(metric_of(loaded, rows, metric) == wanted.at(metric).get<double>());
  }
}

TEST_CASE("the eight tasks take no more rows than a prefix tree per document", "[.wheel]") {
  if (!has_data()) return;
  const auto tokenizer =
      data::Tokenizer::load(data::evaluation_data_folder(data_folder()) / "tokenizers" /
                            "allenai_eleuther-ai-gpt-neox-20b-pii-special.json");
  std::vector<std::string> names;
  for (const char* name : kGoldenNames) names.push_back(task_name(name));
  const auto tasks = load(names, "oe", {});

  const auto seconds_since = [](auto start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (const bool unconditional : {false, true}) {
    auto start = std::chrono::steady_clock::now();
    std::vector<SequenceGroup> groups;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      for (auto& example :
           encode(tasks[t], tokenizer, {.prefix_token = 50279, .unconditional = unconditional})) {
        groups.push_back(std::move(example.group));
        groups.back().order = static_cast<std::int64_t>(t);
      }
    }
    std::cout << groups.size() << " instances, unconditional " << unconditional << ": encoded in "
              << seconds_since(start) << " s\n";
    for (const std::int64_t forest_rows : {1024, 4096, 16384}) {
      start = std::chrono::steady_clock::now();
      const auto rows = rows_to_run(groups, {.forest_rows = forest_rows});
      std::cout << "forests of " << forest_rows << ": " << rows << " rows, planned in "
                << seconds_since(start) << " s\n";
      CHECK(rows < (unconditional ? 4000000 : 2405447));
    }
    if (unconditional) continue;
    start = std::chrono::steady_clock::now();
    test::HashModel model;
    score_groups(groups, std::ref(model), {}, {.on_group = [](std::size_t, auto) {}});
    std::cout << model.forest_rows.size() << " forests, " << model.segments << " segments, "
              << model.targets << " targets; run with a hash for a model in "
              << seconds_since(start) << " s\n";
  }
}
