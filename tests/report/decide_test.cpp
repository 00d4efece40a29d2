#include "report/decide.h"

#include "support/catch.h"

using namespace olmo::report;

namespace {

Equivalence equivalence(double estimate, double half_width, double margin) {
  const Interval interval{estimate - half_width, estimate + half_width};
  return {estimate, interval, margin, 0.01, interval.inside(margin)};
}

/// The margin of every task here is 0.02.
TaskComparison task(double difference, double half_width, double holm_p, std::int64_t flips = 5) {
  TaskComparison made;
  made.task = "a_task";
  made.n = 1000;
  made.difference = difference;
  made.holm_p = made.p = holm_p;
  made.equivalence = equivalence(difference, half_width, 0.02);
  made.flips = flips;
  return made;
}
const TaskComparison kCertifiedTask = task(0.001, 0.01, 0.8);
const TaskComparison kDifferentTask = task(-0.05, 0.01, 0.001);
const TaskComparison kNegligibleTask = task(0.01, 0.005, 0.01);
const TaskComparison kOpenTask = task(0.01, 0.03, 0.6);

ParityReport checkpoints(const std::vector<TaskComparison>& tasks) {
  ParityReport report;
  report.kind = Kind::kCheckpoint;
  report.tasks.emplace().tasks = tasks;
  return report;
}

/// Two runs whose last stretch differs by `mean`; the margin is 0.002 nats.
ParityReport trainings(double mean, double half_width) {
  ParityReport report;
  report.kind = Kind::kTrajectory;
  report.noise.k_a = report.noise.k_b = 4;
  Trajectory& trajectory = report.trajectory.emplace();
  trajectory.last.points = 100;
  trajectory.last.mean = mean;
  trajectory.last.test = equivalence(mean, half_width, trajectory.margin);
  trajectory.last_interval95 = Interval{mean - 1.2 * half_width, mean + 1.2 * half_width};
  return report;
}

SourceComparison source(std::int64_t equal_bits) {
  SourceComparison made;
  made.suite = "a_suite";
  made.documents = 3;
  made.equal_bits = equal_bits;
  return made;
}

ParityReport with_source(ParityReport report, const SourceComparison& source) {
  report.perplexity.emplace().sources = {source};
  return report;
}

void add_mismatch(ParityReport& report, MismatchClass mismatch) {
  report.gate.mismatches.push_back({"some.key", "1", "2", mismatch, "A reason."});
}

Verdict verdict_of(ParityReport report) {
  decide(report);
  INFO(report.reason);
  CHECK(!report.reason.empty());
  CHECK(report.reason.back() == '.');
  return report.verdict;
}

}  // namespace

TEST_CASE("damaged records decide before all else", "[report]") {
  ParityReport report = checkpoints({kDifferentTask});
  add_mismatch(report, MismatchClass::kFatal);
  report.damage = {"A: step 3: the loss is missing or not finite"};
  decide(report);
  CHECK(report.verdict == Verdict::kInvalidData);
  CHECK(report.reason == "A: step 3: the loss is missing or not finite.");

  ParityReport tasks = checkpoints({kCertifiedTask});
  tasks.tasks->invalid = {"a_task: B lacks 3 instances"};
  CHECK(verdict_of(tasks) == Verdict::kInvalidData);
  ParityReport texts = with_source(checkpoints({kCertifiedTask}), source(3));
  texts.perplexity->invalid = {"a_suite: other counts"};
  CHECK(verdict_of(texts) == Verdict::kInvalidData);
}

TEST_CASE("a fatal mismatch decides before any statistics", "[report]") {
  ParityReport report = checkpoints({kDifferentTask});
  add_mismatch(report, MismatchClass::kFatal);
  decide(report);
  CHECK(report.verdict == Verdict::kNotComparable);
  CHECK(report.reason == "some.key (1 and 2): A reason.");

  ParityReport prompts = checkpoints({kCertifiedTask});
  prompts.tasks->mismatched = {"a_task: other prompts"};
  CHECK(verdict_of(prompts) == Verdict::kNotComparable);
}

TEST_CASE("one checkpoint is judged task by task", "[report]") {
  CHECK(verdict_of(checkpoints({kCertifiedTask, kCertifiedTask})) == Verdict::kEquivalent);
  CHECK(verdict_of(checkpoints({kCertifiedTask, kDifferentTask})) == Verdict::kDifferent);
  CHECK(verdict_of(checkpoints({kOpenTask, kDifferentTask})) == Verdict::kDifferent);
  CHECK(verdict_of(checkpoints({kCertifiedTask, kNegligibleTask})) ==
        Verdict::kDifferentNegligible);
  CHECK(verdict_of(checkpoints({kCertifiedTask, kOpenTask})) == Verdict::kInconclusive);
  CHECK(verdict_of(checkpoints({kNegligibleTask, kOpenTask})) == Verdict::kInconclusive);
  CHECK(verdict_of(checkpoints({task(0, 0.03, 1, 0)})) == Verdict::kConsistent);
  // Significant, but not for sure beyond the margin nor within it.
  CHECK(verdict_of(checkpoints({task(0.015, 0.01, 0.01)})) == Verdict::kInconclusive);
  CHECK(verdict_of(checkpoints({})) == Verdict::kInconclusive);
}

TEST_CASE("a macro average that is not certified keeps the verdict from EQUIVALENT", "[report]") {
  ParityReport report = checkpoints({kCertifiedTask, kCertifiedTask});
  report.tasks->macro.emplace().equivalence = equivalence(0.005, 0.01, 0.01);
  report.tasks->all_flips = 5;
  CHECK(verdict_of(report) == Verdict::kInconclusive);
  report.tasks->all_flips = 0;
  CHECK(verdict_of(report) == Verdict::kConsistent);
  report.tasks->macro->equivalence.certified = true;
  CHECK(verdict_of(report) == Verdict::kEquivalent);
}

TEST_CASE("a confound caps the verdict at CONSISTENT", "[report]") {
  ParityReport report = checkpoints({kCertifiedTask});
  add_mismatch(report, MismatchClass::kConfound);
  decide(report);
  CHECK(report.verdict == Verdict::kConsistent);
  REQUIRE(report.caveats.size() == 1);
  CHECK(report.caveats[0].find("some.key (1 and 2)") != std::string::npos);

  ParityReport different = checkpoints({kDifferentTask});
  add_mismatch(different, MismatchClass::kConfound);
  CHECK(verdict_of(different) == Verdict::kDifferent);
  ParityReport benign = checkpoints({kCertifiedTask});
  add_mismatch(benign, MismatchClass::kBenign);
  CHECK(verdict_of(benign) == Verdict::kEquivalent);
}

TEST_CASE("without a noise floor two trainings are CONSISTENT at best", "[report]") {
  ParityReport report = trainings(0.0001, 0.001);
  CHECK(verdict_of(report) == Verdict::kEquivalent);
  report.noise.k_a = 3;
  report.noise.to_run = "Repeat A once more.";
  decide(report);
  CHECK(report.verdict == Verdict::kConsistent);
  REQUIRE(report.caveats.size() == 1);
  CHECK(report.caveats[0] == "Repeat A once more.");

  ParityReport checkpoint = checkpoints({kCertifiedTask});
  checkpoint.noise.to_run = "Repeat A once more.";
  CHECK(verdict_of(checkpoint) == Verdict::kEquivalent);
}

TEST_CASE("a last stretch beyond the margin differs only with the same start and data",
          "[report]") {
  ParityReport report = trainings(0.05, 0.001);
  CHECK(verdict_of(report) == Verdict::kDifferent);
  report.kind = Kind::kOutcome;
  CHECK(verdict_of(report) == Verdict::kInconclusive);
  CHECK(verdict_of(trainings(0.002, 0.001)) == Verdict::kInconclusive);
}

TEST_CASE("a last stretch that is too short for a test never certifies", "[report]") {
  ParityReport report = trainings(0, 0);
  report.trajectory->last.test.reset();
  report.trajectory->last_interval95.reset();
  CHECK(verdict_of(report) == Verdict::kConsistent);
  report.trajectory->last_range = {-0.001, 0.003};
  CHECK(verdict_of(report) == Verdict::kInconclusive);
  report.trajectory->last_range = {0.003, 0.004};
  CHECK(verdict_of(report) == Verdict::kDifferent);
  report.trajectory->last_range = {};
  report.trajectory->last.points = 0;
  CHECK(verdict_of(report) == Verdict::kInconclusive);
}

TEST_CASE("independent trainings are judged as groups", "[report]") {
  ParityReport report = trainings(0.05, 0.001);
  report.kind = Kind::kOutcome;
  report.noise.p = 0.5;
  report.noise.equivalence = equivalence(0.0001, 0.001, 0.002);
  CHECK(verdict_of(report) == Verdict::kEquivalent);
  report.noise.p = 0.03;
  CHECK(verdict_of(report) == Verdict::kDifferentNegligible);
  report.noise.equivalence = equivalence(0.05, 0.001, 0.002);
  CHECK(verdict_of(report) == Verdict::kDifferent);
  report.noise.p = 0.3;
  CHECK(verdict_of(report) == Verdict::kInconclusive);
}

TEST_CASE("what two single trainings answer differently may be chance", "[report]") {
  ParityReport report = trainings(0, 0.001);
  report.tasks.emplace().tasks = {kDifferentTask};
  CHECK(verdict_of(report) == Verdict::kDifferent);
  report.noise.k_b = 1;
  CHECK(verdict_of(report) == Verdict::kInconclusive);
}

TEST_CASE("a source that could not be tested never passes", "[report]") {
  CHECK(verdict_of(with_source(checkpoints({kCertifiedTask}), source(3))) == Verdict::kConsistent);
  CHECK(verdict_of(with_source(checkpoints({kCertifiedTask}), source(2))) ==
        Verdict::kInconclusive);
  SourceComparison tested = source(2);
  tested.unit = kBitsPerToken;
  tested.equivalence = equivalence(0, 0.001, kBpbMargin);
  CHECK(verdict_of(with_source(checkpoints({kCertifiedTask}), tested)) == Verdict::kEquivalent);
  tested.difference = 0.01;
  tested.equivalence = equivalence(0.01, 0.02, kBpbMargin);
  ParityReport report = with_source(checkpoints({kCertifiedTask}), tested);
  decide(report);
  CHECK(report.reason ==
        "Not enough to decide: a_suite (0.01 bits per token) is not certified within ±0.002.");
}
