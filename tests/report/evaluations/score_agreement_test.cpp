#include "report/evaluations/score_agreement.h"

#include <cmath>

#include "report/decide.h"
#include "report/evaluations/task_comparison.h"
#include "support/catch.h"

using namespace olmo::report;

namespace {

/// `n` instances of four options with log-likelihoods about -20; option 0 is chosen by 2 nats.
EvaluationData evaluation(std::int64_t n, const std::string& precision, auto moved) {
  EvaluationData data;
  data.policy = R"({"precision":")" + precision + R"("})";
  EvaluatedTask task{.task = "arc", .primary_metric = "acc"};
  for (std::int64_t i = 0; i < n; ++i) {
    EvaluatedInstance instance;
    instance.doc_id = i;
    instance.first_option = 4 * i;
    instance.options = 4;
    instance.margin = 2;
    task.instances.push_back(instance);
    for (int option = 0; option < 4; ++option)
      task.logprobs.push_back(-20 - 0.001 * static_cast<double>(i % 7) - (option == 0 ? 0 : 2) +
                              moved(i));
  }
  data.tasks.push_back(std::move(task));
  return data;
}

Claim claim_of(const std::string& precision, auto moved, std::int64_t n = 1000) {
  ParityReport report;
  report.kind = Kind::kCheckpoint;
  report.margins = resolve_margins({});
  const auto a = evaluation(n, precision, [](auto) { return 0.0; });
  report.tasks = compare_tasks(a, evaluation(n, precision, moved), report.kind, report.margins);
  CHECK(report.tasks->all_flips == 0);
  decide(report);
  return report.claims.at(0);
}

double noise(std::int64_t i) { return std::sin(static_cast<double>(i) * 1.7); }

}  // namespace

TEST_CASE("equal weights that score five nats apart differ although no choice changed",
          "[report]") {
  const Claim claim = claim_of("fp32", [](auto) { return -5.0; });
  CHECK(claim.verdict == Verdict::kDifferent);
  REQUIRE(claim.decided_by());
  CHECK(claim.decided_by()->endpoint == Endpoint::kScores);
  CHECK(claim_of("amp_bf16", [](auto) { return 5.0; }).verdict == Verdict::kDifferent);
  CHECK(claim_of(
            "fp32", [](auto) { return 5.0; }, 3)
            .verdict == Verdict::kDifferent);
}

TEST_CASE("scores that move far both ways differ although their mean does not", "[report]") {
  CHECK(claim_of("fp32", [](auto i) { return i % 2 == 0 ? 3.0 : -3.0; }).verdict ==
        Verdict::kDifferent);
}

TEST_CASE("rounding of the precision is equivalent, more of it is not", "[report]") {
  CHECK(claim_of("fp32", [](auto i) { return 1e-5 * noise(i); }).verdict == Verdict::kEquivalent);
  CHECK(claim_of("amp_bf16", [](auto i) { return 0.05 * noise(i); }).verdict ==
        Verdict::kEquivalent);
  // A twentieth of a nat is rounding in bf16 only.
  CHECK(claim_of("fp32", [](auto i) { return 0.05 * noise(i); }).verdict == Verdict::kDifferent);
}

TEST_CASE("a small shift of all scores is a finding", "[report]") {
  CHECK(claim_of("fp32", [](auto i) { return 2e-4 + 1e-6 * noise(i); }).verdict ==
        Verdict::kDifferentNegligible);
  CHECK(claim_of("fp32", [](auto i) { return 2e-3 + 1e-6 * noise(i); }).verdict ==
        Verdict::kDifferent);
}

TEST_CASE("agreement has quantiles of the distance and the divergence of the choices", "[report]") {
  const auto a = evaluation(2000, "fp32", [](auto) { return 0.0; });
  const auto b = evaluation(2000, "fp32", [](auto i) { return i == 0 ? 4.0 : 0.5; });
  const auto agreement =
      compare_tasks(a, b, Kind::kCheckpoint, resolve_margins({})).tasks.at(0).agreement;
  CHECK(agreement.options == 8000);
  CHECK(agreement.median == Approx(0.5));
  CHECK(agreement.quantile999 == Approx(0.5));
  CHECK(agreement.largest == Approx(4));
  CHECK(agreement.divergence == Approx(0).margin(1e-12));  // all options of an instance moved alike
}

TEST_CASE("an unknown precision may be bf16", "[report]") {
  const auto zero = [](auto) { return 0.0; };
  const auto fp32 = evaluation(1, "fp32", zero);
  EvaluationData unknown = fp32;
  unknown.policy = "{}";
  CHECK(numeric_noise(fp32, fp32).precision == olmo::Precision::kFp32);
  CHECK(numeric_noise(fp32, unknown).precision != olmo::Precision::kFp32);
}

TEST_CASE("a shift of all scores that rounding may be biased by is no finding", "[report]") {
  CHECK(claim_of("fp32", [](auto i) { return 2e-5 + 1e-8 * noise(i); }).verdict ==
        Verdict::kEquivalent);
}

TEST_CASE("one instance in a thousand that moved further than rounding is what chance gives",
          "[report]") {
  const Claim claim = claim_of("fp32", [](auto i) { return i == 0 ? 0.1 : 1e-5 * noise(i); });
  REQUIRE(claim.tests.at(1).difference_only);
  CHECK(*claim.tests[1].p == Approx(1 - std::pow(0.999, 1000)));
}
