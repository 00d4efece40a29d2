#include "report/copies.h"

#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

ParityReport of_runs(const std::vector<double>& a, const std::vector<double>& b) {
  ParityReport report;
  for (auto [side, losses, id] : {std::tuple(&report.a, &a, "one"), {&report.b, &b, "other"}}) {
    side->run = run_of_losses(*losses);
    side->run->run_id = id;
    side->run->config = "{}";
  }
  report.trajectory = compare_trajectories(*report.a.run, *report.b.run);
  return report;
}

void evaluate(ParityReport& report, const std::string& weights_a, const std::string& weights_b) {
  report.a.evaluation.emplace().evaluation_id = "x";
  report.b.evaluation.emplace().evaluation_id = "y";
  report.a.evaluation->weights_digest = weights_a;
  report.b.evaluation->weights_digest = weights_b;
  for (Side* side : {&report.a, &report.b}) {
    side->evaluation->step = 2;
    side->evaluation->settings = "{}";
  }
}

}  // namespace

TEST_CASE("one run, one log, and logs of the same numbers are told", "[report]") {
  const std::vector<double> losses = {9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6};
  auto report = of_runs(losses, losses);
  CHECK(caveats_of_copies(report).empty());  // the chains tell
  report.a.run->imported = report.b.run->imported = true;
  REQUIRE(caveats_of_copies(report).size() == 1);
  CHECK(caveats_of_copies(report)[0].find("All 20 losses that both logs have") == 0);
  report.a.run->inputs = report.b.run->inputs = {{"log", "a.csv", 3, "d1"}};
  CHECK(caveats_of_copies(report)[0].find("imported from the same log") != std::string::npos);
  report.b.run->run_id = "one";
  CHECK(caveats_of_copies(report)[0].find("records of one run (one)") != std::string::npos);
}

TEST_CASE("a record that was copied under another id is told by the times of its steps",
          "[report]") {
  const std::vector<double> losses = {9, 8, 7, 6};
  auto report = of_runs(losses, losses);
  report.a.run->steps.seconds = {0.1, 0.2, 0.3, 0.4};
  report.b.run->steps.seconds = {0.1, 0.2, 0.3, 0.5};
  REQUIRE(caveats_of_copies(report).size() == 1);
  CHECK(caveats_of_copies(report)[0].find(
            "3 of 4 common steps took both runs the same time to the last bit") == 0);
  report.b.run->steps.seconds = {0.1, 0.2, 0.4, 0.5};
  CHECK(caveats_of_copies(report).empty());
}

TEST_CASE("one evaluation on both sides, or one that was imported twice, is told", "[report]") {
  ParityReport report;
  evaluate(report, "", "");
  CHECK(caveats_of_copies(report).empty());
  report.a.evaluation->settings = report.b.evaluation->settings = R"({"files":[{"sha256":"d1"}]})";
  REQUIRE(caveats_of_copies(report).size() == 1);
  CHECK(caveats_of_copies(report)[0].find("imported from the same files") != std::string::npos);
  report.b.evaluation->evaluation_id = "x";
  CHECK(caveats_of_copies(report)[0].find("Both sides are one evaluation (x)") == 0);
}

TEST_CASE("evaluations of the same weights do not compare runs whose losses differ", "[report]") {
  auto report = of_runs({9, 2}, {9, 2.1});
  evaluate(report, "w", "w");
  CHECK(one_model(report) == "both evaluations are of the same weights, though the losses differ");
  report.a.evaluation->step = 0;  // where both began
  CHECK_FALSE(one_model(report));
  evaluate(report, "w", "v");
  CHECK_FALSE(one_model(report));
  evaluate(report, "", "");
  CHECK_FALSE(one_model(report));
  auto same = of_runs({9, 2}, {9, 2});
  evaluate(same, "w", "w");
  CHECK_FALSE(one_model(same));
  same.trajectory.reset();  // evaluations alone
  CHECK(one_model(same) == "both evaluations are of the same weights");
  same.kind = Kind::kCheckpoint;  // which is what was asked
  CHECK_FALSE(one_model(same));
}

TEST_CASE("a few equal losses of two logs are no sign of a copy", "[report]") {
  const std::vector<double> losses(19, 2.5);
  auto report = of_runs(losses, losses);
  report.a.run->imported = report.b.run->imported = true;
  CHECK(caveats_of_copies(report).empty());
}

TEST_CASE("a log with the losses of a run of ours is no copy of a log", "[report]") {
  const std::vector<double> losses(20, 2.5);
  auto report = of_runs(losses, losses);
  report.a.run->imported = true;
  CHECK(caveats_of_copies(report).empty());
}

TEST_CASE("losses that differ by the decimals of a log fit evaluations of the same weights",
          "[report]") {
  auto report = of_runs({9.12, 5.04, 3.08, 2.31, 2.22}, {9.1, 5.0, 3.1, 2.3, 2.2});
  report.a.run->imported = report.b.run->imported = true;
  evaluate(report, "w", "w");
  CHECK_FALSE(one_model(report));
}
