#include "eval/scoring.h"

#include <algorithm>
#include <random>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::eval;

namespace {

Task make_task(const std::string& primary) {
  Task task;
  task.name = "letters";
  task.primary_metric = primary;
  task.metrics = {{"acc", "sum"},
                  {"len_norm", "per_char"},
                  {"per_byte", "per_byte"},
                  {"per_token", "per_token"},
                  {"spaced", "per_char_spaced"},
                  {"pmi_dc", "pmi"},
                  {"pmi_dc_olmo", "pmi_olmo"},
                  {"ce_loss", "ce_loss"},
                  {"bpb", "bpb"}};
  return task;
}

OptionRow make_row(std::int64_t doc_id, std::int64_t cont_id, std::int64_t label, double logprob) {
  OptionRow row;
  row.task = "letters";
  row.doc_id = doc_id;
  row.cont_id = cont_id;
  row.label = label;
  row.logprob = logprob;
  row.cont_tokens = row.cont_chars = row.cont_bytes = 1;
  return row;
}

const EvaluationMetric* find(const std::vector<EvaluationMetric>& metrics,
                             const std::string& name) {
  for (const auto& metric : metrics)
    if (metric.metric == name) return &metric;
  return nullptr;
}

double value(const std::vector<EvaluationMetric>& metrics, const std::string& name) {
  const auto* metric = find(metrics, name);
  REQUIRE(metric != nullptr);
  return metric->value;
}

double score(const char* name, const OptionRow& row) { return *find_score(name).of(row); }

}  // namespace

TEST_CASE("scores, metrics and standard errors are OLMo's and lm-eval's", "[eval]") {
  const Json golden = read_json_file(std::filesystem::path(OLMO_TEST_DATA) / "eval/scoring.json");
  std::vector<OptionRow> rows;
  const auto close = [](double wanted) { return Approx(wanted).epsilon(2e-6); };
  for (const Json& record : golden.at("rows")) {
    OptionRow row = make_row(record.at("doc_id"), record.at("cont_id"), record.at("label"),
                             record.at("logprob"));
    row.cont_tokens = record.at("tokens");
    row.cont_chars = record.at("chars");
    row.cont_bytes = record.at("bytes");
    row.unconditional_logprob = record.at("unconditional_logprob").get<double>();
    row.unconditional_logit_sum = record.at("unconditional_logit_sum").get<double>();
    const Json& olmo = record.at("olmo");
    CHECK(score("sum", row) == close(olmo.at("acc")));
    CHECK(score("per_char", row) == close(olmo.at("len_norm")));
    CHECK(score("pmi_olmo", row) == Approx(olmo.at("pmi_dc").get<double>()).epsilon(1e-4));
    CHECK(score("ce_loss", row) == close(olmo.at("ce_loss")));
    CHECK(score("bpb", row) == close(olmo.at("bpb")));
    CHECK(score("per_char_spaced", row) * static_cast<double>(row.cont_chars + 1) ==
          close(row.logprob));
    rows.push_back(row);
  }
  std::mt19937 random(1);
  std::shuffle(rows.begin(), rows.end(), random);
  const auto metrics = aggregate(make_task("acc"), rows);
  const Json& olmo = golden.at("olmo");
  CHECK(value(metrics, "acc") == close(olmo.at("acc")));
  CHECK(value(metrics, "len_norm") == close(olmo.at("len_norm")));
  CHECK(value(metrics, "pmi_dc_olmo") == close(olmo.at("pmi_dc")));
  CHECK(value(metrics, "ce_loss") == close(olmo.at("ce_loss")));
  CHECK(value(metrics, "bpb") == close(olmo.at("bpb")));
  const std::pair<const char*, const char*> names[] = {{"acc", "acc"},
                                                       {"len_norm", "acc_norm"},
                                                       {"per_byte", "acc_bytes"},
                                                       {"pmi_dc", "acc_mutual_info"}};
  for (const auto& [ours, theirs] : names) {
    INFO(ours);
    const auto* metric = find(metrics, ours);
    const Json& wanted = golden.at("lm_eval").at(theirs);
    REQUIRE(metric != nullptr);
    CHECK(metric->value == Approx(wanted.at("value").get<double>()).epsilon(1e-14));
    CHECK(*metric->standard_error == Approx(wanted.at("stderr").get<double>()).epsilon(1e-14));
    CHECK(metric->n == 60);
  }
}

TEST_CASE("equal scores choose the first option", "[eval]") {
  std::vector<OptionRow> rows = {make_row(0, 0, 1, -3), make_row(0, 1, 1, -2),
                                 make_row(0, 2, 1, -2)};
  rank_options(make_task("acc"), rows);
  CHECK(rows[0].rank == 3);
  CHECK(rows[1].rank == 1);
  CHECK(rows[2].rank == 2);
  CHECK(rows[0].margin == -1);
  CHECK(rows[1].margin == 0);
  CHECK(value(aggregate(make_task("acc"), rows), "acc") == 1);
  for (auto& row : rows) row.label = 2;
  CHECK(value(aggregate(make_task("acc"), rows), "acc") == 0);
}

TEST_CASE("F1 is that of the first option, and 0 where it is neither chosen nor right", "[eval]") {
  Task task = make_task("acc");
  task.metrics = {{"acc", "sum"}, {"f1", "f1"}};
  std::vector<OptionRow> rows;
  const auto add = [&](bool chooses_first, std::int64_t label) {
    const auto doc_id = std::ssize(rows) / 2;
    rows.push_back(make_row(doc_id, 0, label, chooses_first ? -1 : -3));
    rows.push_back(make_row(doc_id, 1, label, -2));
  };
  const auto f1 = [&] { return find(aggregate(task, rows), "f1")->value; };
  add(false, 1);
  CHECK(f1() == 0);
  add(true, 1);
  CHECK(f1() == 0);
  add(true, 0);
  add(true, 0);
  add(false, 0);  // chosen 3, right 3, both 2
  const auto metrics = aggregate(task, rows);
  CHECK(value(metrics, "f1") == Approx(2.0 / 3));
  CHECK(find(metrics, "f1")->n == 5);
  CHECK_FALSE(find(metrics, "f1")->standard_error);
  CHECK(value(metrics, "acc") == Approx(3.0 / 5));
}

TEST_CASE("a cost ranks the cheapest first, and one option has no margin", "[eval]") {
  std::vector<OptionRow> rows = {make_row(0, 0, 0, -3), make_row(0, 1, 0, -2)};
  rows[0].cont_bytes = 2;
  rank_options(make_task("bpb"), rows);
  CHECK(rows[0].rank == 1);
  CHECK(rows[0].margin == Approx(0.5 * 1.44269504089));
  rows.pop_back();
  rank_options(make_task("bpb"), rows);
  CHECK(rows[0].rank == 1);
  CHECK(rows[0].margin == 0);
}

TEST_CASE("without unconditional scores there is no pmi, and sums rank", "[eval]") {
  std::vector<OptionRow> rows = {make_row(0, 0, 0, -3), make_row(0, 1, 0, -2)};
  rows[0].unconditional_logprob = -5;
  const auto metrics = aggregate(make_task("pmi_dc"), rows);
  CHECK(find(metrics, "pmi_dc") == nullptr);
  CHECK(find(metrics, "pmi_dc_olmo") == nullptr);
  CHECK(value(metrics, "acc") == 0);
  rank_options(make_task("pmi_dc"), rows);
  CHECK(rows[1].rank == 1);
  rows[1].unconditional_logprob = -2;
  rank_options(make_task("pmi_dc"), rows);
  CHECK(rows[0].rank == 1);
  CHECK(value(aggregate(make_task("pmi_dc"), rows), "pmi_dc") == 1);
}

TEST_CASE("instances that miss continuations are left out and counted", "[eval]") {
  std::vector<OptionRow> rows = {
      make_row(0, 0, 0, -1), make_row(0, 1, 0, -2), make_row(1, 1, 1, -1),  // its first is missing
      make_row(2, 0, 2, -1),  // the right one is missing
      make_row(3, 0, 1, -1), make_row(3, 1, 1, -2), make_row(3, 2, 1, -3)};
  rows[4].truncated_tokens = 5;
  const auto metrics = aggregate(make_task("acc"), rows);
  CHECK(value(metrics, "acc") == 0.5);
  CHECK(find(metrics, "acc")->n == 2);
  CHECK(*find(metrics, "acc")->standard_error == Approx(0.5));
  CHECK(value(metrics, "chance") == Approx((1.0 / 2 + 1.0 / 3) / 2));
  CHECK(value(metrics, "skipped") == 2);
  CHECK(value(metrics, "truncated") == 1);

  const auto one = aggregate(make_task("acc"), std::span(rows).first(2));
  CHECK(!find(one, "acc")->standard_error);
  CHECK(find(one, "skipped") == nullptr);
  CHECK(find(one, "truncated") == nullptr);
  CHECK(aggregate(make_task("acc"), {}).empty());
}

TEST_CASE("a metric of an unknown score is refused with the known names", "[eval]") {
  Task task = make_task("acc");
  CHECK_NOTHROW(check_metrics(task));
  task.primary_metric = "f1";
  CHECK_THROWS_AS(check_metrics(task), Error);
  task = make_task("acc");
  task.metrics.push_back({"best", "per_word"});
  try {
    check_metrics(task);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("per_token") != std::string::npos);
    CHECK(std::string(error.what()).find("'per_word'") != std::string::npos);
  }
}

TEST_CASE("a macro average weighs tasks, not instances", "[eval]") {
  std::vector<EvaluationMetric> primaries(2);
  primaries[0].metric = primaries[1].metric = "acc";
  primaries[0].value = 0.5;
  primaries[1].value = 1;
  primaries[0].standard_error = 0.03;
  primaries[1].standard_error = 0.04;
  primaries[0].n = 10;
  primaries[1].n = 1000;
  EvaluationMetric macro = macro_average("ab", primaries);
  CHECK(macro.task == "ab");
  CHECK(macro.scope == "macro");
  CHECK(macro.metric == "acc");
  CHECK(macro.value == 0.75);
  CHECK(*macro.standard_error == Approx(0.025));
  CHECK(macro.n == 1010);
  primaries[1].metric = "len_norm";
  primaries[1].standard_error.reset();
  macro = macro_average("ab", primaries);
  CHECK(macro.metric == "primary");
  CHECK(!macro.standard_error);
}
