#include "report/comparability/loss_spans.h"

#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using Catch::Matchers::Contains;

namespace {

/// A log with these losses at every `width`-th step, which are of `span`; empty: it does not tell.
store::RecordedRun log_of_span(const std::string& span, const std::vector<double>& losses,
                               std::int64_t width = 2) {
  store::RecordedRun run = run_of_losses(losses);
  run.label = "theirs";
  run.imported = true;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    run.steps.step[i] *= width;
    run.steps.tokens[i] *= width;
  }
  run.attempts.emplace_back().environment =
      span.empty() ? "{}" : R"({"loss_span": ")" + span + "\"}";
  return run;
}

}  // namespace

TEST_CASE("beside means since the row before every step becomes such means", "[report]") {
  store::RecordedRun a = run_of_losses({8, 6, 5, 3, 1}), b = log_of_span("interval", {7, 4});
  const auto found = align_spans(a, b);
  CHECK(found.spans.steps == std::vector<std::int64_t>{2, 4});
  CHECK_THAT(found.caveat, Contains("compared are such means of both sides"));
  CHECK(a.steps.loss == std::vector<double>{8, 7, 5, 4, 1});
  CHECK(b.steps.loss == std::vector<double>{7, 4});
}

TEST_CASE("finer means become coarser ones", "[report]") {
  store::RecordedRun a = log_of_span("interval", {8, 6, 5, 1}),
                     b = log_of_span("interval", {7, 3}, 4);
  CHECK(align_spans(b, a).spans.steps == std::vector<std::int64_t>{4, 8});
  CHECK(a.steps.loss == std::vector<double>{8, 7, 5, 3});
}

TEST_CASE("losses of the same steps stay as they are", "[report]") {
  for (const char* span : {"step", "interval", ""}) {
    store::RecordedRun a = log_of_span(span, {8, 6}), b = log_of_span(span, {7, 4});
    const auto found = align_spans(a, b);
    CHECK(found.spans.steps.empty());
    CHECK(found.caveat.empty());
  }
  store::RecordedRun a = run_of_losses({8, 6, 5, 3}), b = log_of_span("step", {6, 3});
  CHECK(align_spans(a, b).caveat.empty());
  store::RecordedRun every = log_of_span("interval", {8, 6, 5, 3}, 1);
  CHECK(align_spans(a, every).caveat.empty());
  CHECK(a.steps.loss == std::vector<double>{8, 6, 5, 3});
}

TEST_CASE("means that the rows of the other side do not make up are told", "[report]") {
  store::RecordedRun a = log_of_span("step", {8, 6}), b = log_of_span("interval", {7, 4});
  const auto found = align_spans(a, b);
  CHECK(found.spans.steps.empty());
  CHECK_THAT(found.caveat, Contains("compared as they are"));
  CHECK(a.steps.loss == std::vector<double>{8, 6});
}

TEST_CASE("rows that may be means are told beside finer ones", "[report]") {
  store::RecordedRun a = run_of_losses({8, 6, 5, 3}), b = log_of_span("", {7, 4});
  CHECK_THAT(align_spans(a, b).caveat, Contains("--loss-span"));
  CHECK(a.steps.loss == std::vector<double>{8, 6, 5, 3});
}

TEST_CASE("a repeat gets the means of the compared runs, if it has their steps", "[report]") {
  store::RecordedRun repeat = run_of_losses({8, 6, 5, 3}), shorter = run_of_losses({8, 6, 5});
  take_means(repeat, {0, {2, 4}});
  take_means(shorter, {0, {2, 4}});
  CHECK(repeat.steps.loss == std::vector<double>{8, 7, 5, 4});
  CHECK(shorter.steps.loss == std::vector<double>{8, 6, 5});
}

TEST_CASE("the first interval of a log that begins late is as long as the second", "[report]") {
  store::RecordedRun a = run_of_losses({9, 9, 9, 9, 6, 4, 3, 1}),
                     b = log_of_span("interval", {5, 2});
  b.steps.step = {6, 8};
  CHECK(align_spans(a, b).spans.begin == 4);
  CHECK(a.steps.loss == std::vector<double>{9, 9, 9, 9, 6, 5, 3, 2});
}
