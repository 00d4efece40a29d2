// The reference's perplexities, where OLMO_GOLDEN_DIR names their folder (hidden: olmo_tests
// "[.golden]"): real tokenizer, real model, all windows.
#include <cstdlib>
#include <map>

#include <nlohmann/json.hpp>

#include "core/compute/libtorch.h"
#include "core/files/json.h"
#include "data/scratch.h"
#include "data/text_reader.h"
#include "eval/perplexity.h"
#include "eval/perplexity_summary.h"
#include "model/olmo.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"

using namespace olmo::eval;
using olmo::DocumentRow;
using olmo::Json;
using olmo::TokenForest;
using olmo::TokenScore;
using olmo::model::Olmo;
using olmo::test::ScratchFolder;

namespace fs = std::filesystem;

namespace {

Olmo golden_model(const fs::path& folder) {
  const Json meta = olmo::read_json_file(folder / "meta.json");
  Olmo model(olmo::test::model_config_from(meta.at("config")),
             olmo::resolve_policy("portable", "auto", 0));
  model.load_weights(olmo::test::read_golden_tensors(folder / "weights.olmo.safetensors").tensors);
  return model;
}

/// The documents of documents.jsonl as one file, whose ids are their keys.
fs::path write_documents(const std::vector<Json>& goldens, const fs::path& inputs,
                         const ScratchFolder& folder) {
  std::map<std::string, std::string> texts;
  for (const auto& file : olmo::data::expand_inputs({inputs})) {
    olmo::data::LineReader reader(file);
    for (olmo::data::Line line; reader.next(line);)
      texts[file.filename().string() + "#" + std::to_string(line.number - 1)] =
          olmo::data::parse_document(line.bytes).text.value();
  }
  std::string lines;
  for (const Json& golden : goldens) {
    const std::string key = golden.at("key");
    const std::string text = golden.contains("text") ? golden.at("text") : Json(texts.at(key));
    lines += Json{{"id", key}, {"text", text}}.dump() + "\n";
  }
  return folder.write("documents.jsonl", lines);
}

void check_documents(const std::vector<Json>& goldens, const std::vector<DocumentRow>& rows,
                     const std::string& length) {
  REQUIRE(rows.size() == goldens.size());
  for (const DocumentRow& row : rows) {
    const Json& golden = goldens[static_cast<std::size_t>(row.index)];
    const Json& expected = golden.at("catwalk").at(length);
    INFO(row.document << " in windows of " << length);
    CHECK(golden.at("key") == row.document);
    CHECK(row.nll == Approx(-expected.at("sum_logits").get<double>()).epsilon(1e-5));
    CHECK(row.windows == expected.at("n_windows"));
    CHECK(row.tokens == golden.at("n_tokens"));
    CHECK(row.bytes == golden.at("num_bytes"));
    CHECK(row.chars == golden.at("num_chars"));
    CHECK(row.words == golden.at("num_words"));
  }
}

double value_of(const std::vector<olmo::EvaluationMetric>& metrics, const std::string& name) {
  for (const auto& metric : metrics)
    if (metric.scope.empty() && metric.metric == name) return metric.value;
  FAIL("no metric " << name);
  return 0;
}

}  // namespace

TEST_CASE("perplexities of the reference, document by document", "[.golden]") {
  const char* root = std::getenv("OLMO_GOLDEN_DIR");
  if (root == nullptr) return;
  const fs::path folder = root;
  std::vector<Json> goldens;
  olmo::data::LineReader reader(folder / "ppl/documents.jsonl");
  for (olmo::data::Line line; reader.next(line);) goldens.push_back(Json::parse(line.bytes));
  const Json summary = olmo::read_json_file(folder / "ppl/summary.json");

  const auto tokenizer = olmo::data::Tokenizer::load(
      folder.parent_path() / "tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json");
  Olmo model = golden_model(folder / "model/vocab50304_tied");
  const auto score = [&](const TokenForest& forest, std::span<TokenScore> scores) {
    model.score(forest, scores);
  };
  const ScratchFolder scratch;
  auto suite = open_perplexity_suite("golden", write_documents(goldens, folder / "inputs", scratch),
                                     DocumentConvention::kCatwalk);
  PerplexityOptions options;
  options.eos_token_id = summary.at("prefix_token");
  const auto evaluate = [&](std::int64_t max_length) {
    options.max_length = max_length;
    std::vector<DocumentRow> rows;
    PerplexityCallbacks callbacks;
    callbacks.on_document = [&](const DocumentRow& row) { rows.push_back(row); };
    evaluate_perplexity(suite, &tokenizer, score, options, callbacks);
    return rows;
  };
  for (const auto& [length, totals] : summary.at("catwalk_totals_by_max_length").items()) {
    const auto rows = evaluate(std::stoll(length));
    check_documents(goldens, rows, length);
    const auto metrics = summarize_perplexity(rows, suite.convention);
    CHECK(value_of(metrics, "nll") == Approx(totals.at("nll").get<double>()).epsilon(1e-6));
    CHECK(value_of(metrics, "bpb") ==
          Approx(totals.at("bits_per_byte").get<double>()).epsilon(1e-6));
    for (const std::string unit : {"byte", "char", "word"})
      CHECK(value_of(metrics, "ppl_" + unit) ==
            Approx(totals.at("ppl_" + unit).get<double>()).epsilon(1e-5));
    CHECK(value_of(metrics, "ppl") == Approx(totals.at("ppl_token").get<double>()).epsilon(1e-5));
  }

  suite.convention = DocumentConvention::kOlmo;
  for (const Json& expected : summary.at("olmo_in_loop")) {
    const auto rows = evaluate(expected.at("chunk_size"));
    const Json& losses = expected.at("instance_ce_mean_over_L-1");
    REQUIRE(rows.size() == losses.size());
    for (const DocumentRow& row : rows)
      CHECK(row.nll / static_cast<double>(row.tokens) ==
            Approx(losses[static_cast<std::size_t>(row.index)].get<double>()).epsilon(1e-5));
    const auto metrics = summarize_perplexity(rows, suite.convention);
    const Json& reference = expected.at("metrics");
    CHECK(value_of(metrics, "ce_loss") ==
          Approx(reference.at("eval/val/CrossEntropyLoss").get<double>()).epsilon(1e-6));
    CHECK(value_of(metrics, "ppl") ==
          Approx(reference.at("eval/val/Perplexity").get<double>()).epsilon(1e-5));
  }
}
