#include "eval/perplexity_summary.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "core/compute/random.h"
#include "core/files/json.h"
#include "support/catch.h"

using namespace olmo::eval;
using olmo::DocumentRow;
using olmo::EvaluationMetric;
using olmo::Json;

namespace {

std::vector<DocumentRow> rows_from(const Json& json) {
  std::vector<DocumentRow> rows;
  for (const Json& row : json) {
    DocumentRow& added = rows.emplace_back();
    added.suite = "s";
    added.source = row.at("source");
    added.subdomain = row.at("subdomain");
    added.index = static_cast<std::int64_t>(rows.size()) - 1;
    added.tokens = row.at("tokens");
    added.bytes = row.at("bytes");
    added.chars = row.at("chars");
    added.words = row.at("words");
    added.nll = row.at("nll");
  }
  return rows;
}

using Table = std::map<std::pair<std::string, std::string>, EvaluationMetric>;

Table table_of(const std::vector<EvaluationMetric>& metrics) {
  Table table;
  for (const EvaluationMetric& metric : metrics) {
    CHECK(metric.task == "s");
    CHECK(table.emplace(std::pair(metric.scope, metric.metric), metric).second);
  }
  return table;
}

/// Documents whose loss per token varies; the population's ratio of sums is known.
std::vector<DocumentRow> draw_documents(olmo::Pcg64& random, int count) {
  std::vector<DocumentRow> rows(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].suite = "s";
    rows[i].source = "a";
    rows[i].index = static_cast<std::int64_t>(i);
    rows[i].tokens = 50 + random.interval(100);
    rows[i].bytes = 4 * rows[i].tokens;
    rows[i].chars = rows[i].bytes;
    rows[i].words = rows[i].tokens;
    const double per_token = 2.0 + static_cast<double>(random.interval(2000)) / 1000.0;  // mean 3
    rows[i].nll = per_token * static_cast<double>(rows[i].tokens);
  }
  return rows;
}

}  // namespace

TEST_CASE("sums and ratios by scope are lm-eval's", "[eval]") {
  const Json golden = olmo::read_json_file(OLMO_TEST_DATA "/eval/perplexity.json").at("catwalk");
  const auto rows = rows_from(golden.at("rows"));
  const Table table =
      table_of(summarize_perplexity(rows, DocumentConvention::kCatwalk, {.resamples = 20}));
  std::size_t ratios = 0;
  for (const auto& [scope, metrics] : golden.at("expected").items()) {
    for (const auto& [name, value] : metrics.items()) {
      INFO(scope << " " << name);
      REQUIRE(table.contains({scope, name}));
      CHECK(table.at({scope, name}).value == Approx(value.get<double>()).epsilon(1e-12));
      ++ratios;
    }
  }
  const auto sums = std::count_if(table.begin(), table.end(), [](const auto& entry) {
    return entry.first.second == "nll" || entry.first.second == "tokens" ||
           entry.first.second == "bytes";
  });
  CHECK(table.size() == ratios + static_cast<std::size_t>(sums));
  double nll = 0;
  for (const auto& row : rows) nll += row.nll;
  CHECK(table.at({"", "nll"}).value == Approx(nll));
  CHECK(table.at({"", "ppl"}).n == static_cast<std::int64_t>(rows.size()));
  CHECK(table.at({"macro", "bpb"}).n == 6);
  CHECK(table.at({"macro/sources", "bpb"}).n == 4);
}

TEST_CASE("the in-loop convention averages instances as OLMo's evaluator does", "[eval]") {
  const Json golden = olmo::read_json_file(OLMO_TEST_DATA "/eval/perplexity.json").at("olmo");
  const Table table =
      table_of(summarize_perplexity(rows_from(golden.at("rows")), DocumentConvention::kOlmo));
  for (const auto& [scope, metrics] : golden.at("expected").items())
    for (const auto& [name, value] : metrics.items())
      CHECK(table.at({scope, name}).value == Approx(value.get<double>()).epsilon(1e-6));  // fp32
  CHECK_FALSE(table.contains({"", "bpb"}));
  CHECK(table.contains({"macro", "ce_loss"}));
}

TEST_CASE("a summary depends on the rows alone: not on their order, nor on threads", "[eval]") {
  const Json golden = olmo::read_json_file(OLMO_TEST_DATA "/eval/perplexity.json").at("catwalk");
  auto rows = rows_from(golden.at("rows"));
  const auto expected = table_of(summarize_perplexity(rows, DocumentConvention::kCatwalk));
  std::reverse(rows.begin(), rows.end());
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  const auto again = table_of(summarize_perplexity(rows, DocumentConvention::kCatwalk));
  at::set_num_threads(threads);
  REQUIRE(again.size() == expected.size());
  for (const auto& [key, metric] : again) {
    CHECK(metric.value == expected.at(key).value);
    CHECK(metric.low == expected.at(key).low);
    CHECK(metric.high == expected.at(key).high);
    CHECK(metric.standard_error == expected.at(key).standard_error);
  }
}

TEST_CASE("intervals enclose their value; what has one document has none", "[eval]") {
  const Json golden = olmo::read_json_file(OLMO_TEST_DATA "/eval/perplexity.json").at("catwalk");
  const auto table =
      table_of(summarize_perplexity(rows_from(golden.at("rows")), DocumentConvention::kCatwalk));
  CHECK_FALSE(table.at({"source=a/subdomain=y", "ppl"}).low);
  CHECK_FALSE(table.at({"", "nll"}).low);
  // Nor has a mean over it: how far it is off nobody knows.
  CHECK_FALSE(table.at({"source=a/macro", "bpb"}).low);
  CHECK_FALSE(table.at({"macro", "bpb"}).standard_error);
  for (const std::string scope : {"", "source=a", "source=b"}) {
    const auto& metric = table.at({scope, "bpb"});
    INFO(scope);
    REQUIRE(metric.low);
    CHECK(*metric.low < metric.value);
    CHECK(metric.value < *metric.high);
    CHECK(*metric.standard_error > 0);
  }
  CHECK(summarize_perplexity({}, DocumentConvention::kCatwalk).empty());
}

TEST_CASE("one document beside empty ones has no interval", "[eval]") {
  const Json golden = olmo::read_json_file(OLMO_TEST_DATA "/eval/perplexity.json").at("catwalk");
  auto rows = rows_from(golden.at("rows"));
  rows.resize(2);
  rows[1] = rows[0];
  rows[1].nll = 0;
  rows[1].tokens = rows[1].bytes = rows[1].chars = rows[1].words = 0;
  const auto table = table_of(summarize_perplexity(rows, DocumentConvention::kCatwalk));
  CHECK_FALSE(table.at({"", "bpb"}).low);
  CHECK(table.at({"", "bpb"}).value > 0);
}

TEST_CASE("nineteen of twenty intervals cover the truth", "[eval]") {
  olmo::Pcg64 random(11);
  constexpr int kTrials = 200;
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto rows = draw_documents(random, 40);
    const auto table =
        table_of(summarize_perplexity(rows, DocumentConvention::kCatwalk, {.resamples = 200}));
    const auto& bpb = table.at({"", "bpb"});
    const double truth = 3.0 / 4.0 / std::log(2.0);
    covered += *bpb.low <= truth && truth <= *bpb.high ? 1 : 0;
  }
  CHECK(covered >= 178);  // 89 %: a percentile interval of 40 documents is a little narrow
  CHECK(covered < 200);
}

TEST_CASE("the interval of a macro average is that of its domains, resampled each by itself",
          "[eval]") {
  olmo::Pcg64 random(5);
  std::vector<DocumentRow> rows;
  double variance = 0;
  constexpr int kDomains = 6;
  for (int domain = 0; domain < kDomains; ++domain) {
    for (DocumentRow& row : draw_documents(random, 30)) {
      row.subdomain = std::to_string(domain);
      row.index = static_cast<std::int64_t>(rows.size());
      rows.push_back(row);
    }
  }
  const auto table = table_of(summarize_perplexity(rows, DocumentConvention::kCatwalk));
  for (int domain = 0; domain < kDomains; ++domain) {
    const auto& bpb = table.at({"source=a/subdomain=" + std::to_string(domain), "bpb"});
    variance += *bpb.standard_error * *bpb.standard_error;
  }
  const auto& macro = table.at({"macro", "bpb"});
  CHECK(*macro.standard_error == Approx(std::sqrt(variance) / kDomains).epsilon(0.1));
  CHECK_FALSE(table.contains({"macro/sources", "bpb"}));
}
