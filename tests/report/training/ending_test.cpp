#include "report/training/ending.h"

#include "report/decide.h"
#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

/// A run of so many steps that ended like this.
Side ended(std::size_t steps, const std::string& status) {
  Side side;
  side.run = run_of_losses(std::vector<double>(steps, 2));
  side.run->status = status;
  side.run->max_steps = 50;
  return side;
}

/// Of 30 common steps, all with the same bits.
ParityReport equal_runs(const Side& a, const Side& b) {
  ParityReport report;
  report.a = a;
  report.b = b;
  report.identity.known = true;
  report.identity.common_steps = report.identity.equal_steps = 30;
  report.trajectory.emplace();
  return report;
}

}  // namespace

TEST_CASE("a run that diverged in a step that the other trained differs from it", "[report]") {
  const Side fine = ended(50, "finished"), diverged = ended(30, "diverged");
  CHECK(*diverged_alone(fine, diverged) ==
        "These two models differ: B diverged in step 31, whose loss, gradient or weights are not "
        "finite, and A went on to step 50");
  CHECK(diverged_alone(diverged, fine)->find("A diverged in step 31") != std::string::npos);
  CHECK_FALSE(diverged_alone(fine, fine));
  // The one that ended first is the one that differs.
  CHECK(diverged_alone(ended(40, "diverged"), diverged)->find("B diverged in step 31") !=
        std::string::npos);
  CHECK_FALSE(diverged_alone(diverged, diverged));
  CHECK(caveats_of_ends(fine, diverged).empty());  // the reason says it
  CHECK(caveats_of_ends(diverged, diverged).size() == 2);
}

TEST_CASE("of other batch sizes the tokens tell who went on", "[report]") {
  Side small = ended(40, "finished"), large = ended(30, "diverged");
  for (auto& tokens : large.run->steps.tokens) tokens *= 2;
  CHECK_FALSE(diverged_alone(small, large));  // 320 tokens, 480
  small = ended(80, "finished");
  CHECK(
      diverged_alone(small, large)
          ->find("B diverged in step 31, whose loss, gradient or weights are not finite (after 480 "
                 "tokens), and A went on to 640 tokens") != std::string::npos);
}

TEST_CASE("a divergence that the other run has not come to caps the verdict", "[report]") {
  const Side diverged = ended(30, "diverged"), stopped = ended(30, "stopped");
  CHECK_FALSE(diverged_alone(diverged, stopped));
  CHECK(cap_of_ends(stopped, diverged)->find("and A ends before it") != std::string::npos);
  CHECK_FALSE(cap_of_ends(stopped, stopped));
  CHECK_FALSE(cap_of_ends(diverged, diverged));
  const auto caveats = caveats_of_ends(diverged, stopped);
  REQUIRE(caveats.size() == 2);
  CHECK(caveats[1] == "B is no finished training: its record is stopped at step 30 of 50.");
}

TEST_CASE("a log that ends before the length of its config is no finished training", "[report]") {
  Side log = ended(30, "finished");
  log.run->imported = true;
  CHECK(caveats_of_ends(ended(50, "finished"), log) ==
        std::vector<std::string>{"B is no finished training: its log ends at step 30 of 50."});
  log.run->steps.step.back() = 49;  // a row every 20 steps
  CHECK(caveats_of_ends(log, log).empty());
  log.run->max_steps = 0;  // not told
  CHECK(caveats_of_ends(log, log).empty());
}

TEST_CASE("what has the same bits could only say more of the setups", "[report]") {
  ParityReport report = equal_runs(ended(50, "finished"), ended(50, "finished"));
  decide(report);
  CHECK(report.claims[0].verdict == Verdict::kIdentical);
  CHECK(report.claims[0].stronger.find("about the setups") != std::string::npos);
  CHECK_FALSE(report.claims[0].deciding);  // the bits decide, and no test
}

TEST_CASE("no verdict but DIFFERENT is given where one side diverged", "[report]") {
  ParityReport report = equal_runs(ended(50, "finished"), ended(30, "diverged"));
  decide(report);
  CHECK(report.verdict == Verdict::kDifferent);
  CHECK(report.claim == "models");
  CHECK(report.reason.find("B diverged in step 31") != std::string::npos);
  report.b = ended(50, "finished");
  decide(report);
  CHECK(report.verdict == Verdict::kIdentical);
}

TEST_CASE("equal bits up to a divergence that the other has not come to are not IDENTICAL",
          "[report]") {
  ParityReport report = equal_runs(ended(30, "stopped"), ended(30, "diverged"));
  report.trajectory->test = Test{.name = "loss of the last stretch", .n = 30, .equal_bits = true};
  report.margins = resolve_margins({});
  decide(report);
  CHECK(report.verdict == Verdict::kConsistent);
  CHECK(report.reason.find("and A ends before it") != std::string::npos);
  report.a = ended(30, "diverged");
  decide(report);
  CHECK(report.verdict == Verdict::kIdentical);  // both, in the same step
}
