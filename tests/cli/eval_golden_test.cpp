// `olmo-harness eval` as a whole against OLMo's evaluators and lm-eval: a small model, made-up
// documents of the eight tasks in their sources' layout, and what tests/goldens/make_evaluation.py
// had the references score on them.
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "store/evaluations/evaluation_db.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

constexpr char kTasks[] = "arc_easy,arc_challenge,boolq,hellaswag,openbook_qa,piqa,sciq,winogrande";
constexpr char kLength[] = "96";  ///< to which the references cut requests
/// Sums of up to some hundred log-probabilities of this size differ by 2.3e-5 at most.
constexpr double kNats = 1e-4;

/// Lines of expected.jsonl of a kind, of all conventions if none is named.
std::vector<Json> expected(const std::string& kind, const std::string& convention = "") {
  std::ifstream file(kGolden / "expected.jsonl");
  std::vector<Json> found;
  for (std::string line; std::getline(file, line);) {
    Json row = Json::parse(line);
    if (row.at("kind") == kind && (convention.empty() || row.at("convention") == convention))
      found.push_back(std::move(row));
  }
  REQUIRE(!found.empty());
  return found;
}

/// An evaluation of the golden model, done.
class Evaluation {
 public:
  explicit Evaluation(const Words& more) {
    Words words = {"eval",        (kGolden / "model").string(),
                   "--tokenizer", (kGolden / "tokenizer.json").string(),
                   "--data",      (kGolden / "data").string(),
                   "--db",        database().string(),
                   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto ended = harness(folder_ / "log", words);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    report_ = Json::parse(ended.out);
    store::RecordDatabase records(database(), store::OpenMode::kReadOnly);
    const store::EvaluationDb db(records);
    const auto id = db.find("");
    for (const auto& task : db.tasks(id)) {
      for (auto& row : db.options(id, task.record.task))
        options_.emplace(std::tuple(row.task, row.doc_id, row.cont_id), std::move(row));
      for (auto& row : db.documents(id, task.record.task)) documents_.push_back(std::move(row));
    }
  }

  [[nodiscard]] const Json& report() const { return report_; }
  [[nodiscard]] const auto& options() const { return options_; }
  [[nodiscard]] const std::vector<DocumentRow>& documents() const { return documents_; }

 private:
  [[nodiscard]] fs::path database() const { return folder_ / "evaluations.db"; }

  TemporaryDirectory folder_;
  Json report_;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, OptionRow> options_;
  std::vector<DocumentRow> documents_;
};

void check_near(const Json& row, const char* key, std::optional<double> value) {
  if (!row.contains(key)) return;
  INFO(key);
  REQUIRE(value.has_value());
  CHECK(*value == Approx(row.at(key).get<double>()).margin(kNats).epsilon(0));
}

void check_option(const Json& row, const OptionRow& option) {
  CHECK(option.label == row.at("label"));
  CHECK(option.ctx_tokens == row.at("ctx_tokens"));
  CHECK(option.truncated_tokens == row.at("truncated_tokens"));
  CHECK(option.cont_tokens == row.at("cont_tokens"));
  CHECK(option.cont_chars == row.at("cont_chars"));
  CHECK(option.cont_bytes == row.at("cont_bytes"));
  if (row.contains("is_greedy")) CHECK(option.is_greedy == row.at("is_greedy"));
  check_near(row, "logprob", option.logprob);
  check_near(row, "unconditional_logprob", option.unconditional_logprob);
  check_near(row, "unconditional_logit_sum", option.unconditional_logit_sum);
}

/// Accuracies are exact: no ranking of the goldens is close.
void check_task(const Json& row, const Json& report) {
  CHECK(report.at("n") == row.at("n"));
  if (row.contains("primary_metric"))
    CHECK(report.at("primary_metric") == row.at("primary_metric"));
  for (const auto& [metric, value] : row.at("metrics").items()) {
    INFO(metric);
    CHECK(report.at(metric).get<double>() == Approx(value.get<double>()).epsilon(1e-5));
  }
}

void check_convention(const std::string& convention) {
  const Evaluation evaluation(
      {"--convention", convention, "--tasks", kTasks, "--max-length", kLength});
  const auto rows = expected("option", convention);
  CHECK(evaluation.options().size() == rows.size());
  for (const auto& row : rows) {
    INFO(row.dump());
    const auto key =
        std::tuple(row.at("task").get<std::string>(), row.at("doc_id").get<std::int64_t>(),
                   row.at("cont_id").get<std::int64_t>());
    REQUIRE(evaluation.options().contains(key));
    check_option(row, evaluation.options().at(key));
  }
  for (const auto& row : expected("task", convention)) {
    INFO(row.dump());
    check_task(row, evaluation.report().at("tasks").at(row.at("task").get<std::string>()));
  }
}

}  // namespace

TEST_CASE("the eight tasks have the scores of OLMo's in-loop evaluators", "[cli]") {
  check_convention("olmo");
}

TEST_CASE("the eight tasks have the scores of OLMo's OEEvalTask on oe-eval's requests", "[cli]") {
  check_convention("oe");
}

TEST_CASE("the eight tasks have the scores of lm-eval on the transformers model", "[cli]") {
  check_convention("lm-eval");
}

TEST_CASE("documents have the perplexity of lm-eval's rolling windows", "[cli]") {
  const Evaluation evaluation(
      {"--perplexity", "made=" + (kGolden / "perplexity/documents.jsonl").string()});
  const auto rows = expected("document");
  REQUIRE(evaluation.documents().size() == rows.size());
  double nll = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const auto& document = evaluation.documents()[i];
    INFO(row.dump());
    CHECK(row.at("document") == document.document);
    CHECK(row.at("source") == document.source);
    CHECK(row.at("subdomain") == document.subdomain);
    CHECK(document.tokens == row.at("tokens"));
    CHECK(document.windows == row.at("windows"));
    CHECK(document.bytes == row.at("bytes"));
    CHECK(document.chars == row.at("chars"));
    CHECK(document.words == row.at("words"));
    CHECK(document.nll == Approx(row.at("nll").get<double>()).epsilon(1e-6));
    nll += row.at("nll").get<double>();
  }
  CHECK(evaluation.report().at("perplexity").at("made").at("nll").get<double>() ==
        Approx(nll).epsilon(1e-6));
}

TEST_CASE("a token file has the loss of OLMo's in-loop evaluator", "[cli]") {
  const Evaluation evaluation(
      {"--perplexity", "made=" + (kGolden / "perplexity/tokens.npy").string()});
  const Json row = expected("instances").front();
  const Json& report = evaluation.report().at("perplexity").at("made");
  CHECK(report.at("documents") == row.at("n"));
  for (const char* metric : {"ce_loss", "ppl"})
    CHECK(report.at(metric).get<double>() == Approx(row.at(metric).get<double>()).epsilon(1e-6));
}

TEST_CASE("scores have the same bits however they are computed", "[cli]") {
  const Words tasks = {"--tasks", "arc_easy,sciq,winogrande"};
  const Evaluation usual(tasks);
  for (const Words& how :
       {Words{"--no-prefix-sharing", "--threads", "1"},
        Words{"--batch-tokens", "50", "--threads", "3"}, Words{"--isa", "plain"}}) {
    Words words = tasks;
    words.insert(words.end(), how.begin(), how.end());
    const Evaluation other(words);
    INFO(how.front());
    REQUIRE(other.options().size() == usual.options().size());
    for (const auto& [key, option] : usual.options()) {
      const auto& again = other.options().at(key);
      CHECK(again.logprob == option.logprob);
      CHECK(again.unconditional_logprob == option.unconditional_logprob);
      CHECK(again.unconditional_logit_sum == option.unconditional_logit_sum);
    }
  }
}

}  // namespace olmo::test
