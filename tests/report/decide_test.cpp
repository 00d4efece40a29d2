#include "report/decide.h"

#include "support/catch.h"

using namespace olmo::report;

namespace {

/// The margins of judge() below: 0.01 nats, 0.5 and 1 percentage points, 0.002 bits per byte.
Conditions conditions(Kind kind = Kind::kTrajectory) { return {kind, resolve_margins({}), {}, {}}; }

Test test(Endpoint endpoint, double estimate, double half_width, double p = 1) {
  Test made;
  made.endpoint = endpoint;
  made.name = "test " + std::to_string(static_cast<int>(endpoint));
  made.unit = "units";
  made.estimate = estimate;
  made.interval90 = {estimate - half_width, estimate + half_width};
  made.interval95 = {estimate - 1.2 * half_width, estimate + 1.2 * half_width};
  made.p = p;
  made.n = 1000;
  return made;
}
const Test kLossInside = test(Endpoint::kLoss, 0.001, 0.002);
const Test kLossOpen = test(Endpoint::kLoss, 0.008, 0.005, 0.2);
const Test kLossBeyond = test(Endpoint::kLoss, 0.03, 0.002, 1e-6);
const Test kMacroInside = test(Endpoint::kMacro, 0.1, 0.3);
const Test kMacroOpen = test(Endpoint::kMacro, 0.3, 0.4, 0.2);
const Test kTaskInside = test(Endpoint::kTask, 0, 0.5);
const Test kTaskOpen = test(Endpoint::kTask, 0.5, 2, 0.7);
const Test kTaskBeyond = test(Endpoint::kTask, -5, 1, 1e-4);

Claim judged(std::vector<Test> tests, Scope scope = Scope::kModels) {
  return judge(scope, std::move(tests), conditions());
}
Verdict verdict_of(std::vector<Test> tests) { return judged(std::move(tests)).verdict; }

Claim claim(Scope scope, Verdict verdict, bool tested = true) {
  Claim made{.scope = scope, .verdict = verdict};
  if (tested) made.tests.push_back(kLossInside);
  return made;
}

void add_mismatch(ParityReport& report, MismatchClass mismatch) {
  report.gate.mismatches.push_back({"some.key", "1", "2", mismatch, "A reason."});
}

/// Evaluations of the same weights, of one task whose 1000 instances all have the same bits.
ParityReport checkpoints() {
  ParityReport report;
  report.kind = Kind::kCheckpoint;
  report.margins = resolve_margins({});
  TaskComparison task;
  task.task = "a_task";
  task.n = 1000;
  task.agreement.options = 2000;
  task.agreement.equal_bits = 2000;
  task.equivalence.interval = {-0.003, 0.003};
  report.tasks.emplace().tasks = {task};
  return report;
}

}  // namespace

TEST_CASE("loss and macro average decide, single tasks are reported", "[report]") {
  CHECK(verdict_of({kLossInside, kMacroInside, kTaskInside}) == Verdict::kEquivalent);
  const Claim claim = judged({kLossInside, kMacroInside, kTaskOpen});
  CHECK(claim.verdict == Verdict::kEquivalent);
  CHECK_FALSE(claim.tests[2].certified);
  CHECK(verdict_of({kLossInside, kMacroOpen, kTaskInside}) == Verdict::kInconclusive);
  CHECK(verdict_of({kLossOpen, kMacroInside}) == Verdict::kInconclusive);
}

TEST_CASE("the order of endpoints ends at the first that is not certified", "[report]") {
  Test large = kTaskInside, small = kTaskInside;
  large.n = 10'000;
  large.interval90 = {-2, 2};
  const Claim claim = judged({small, large, kMacroInside});
  REQUIRE(claim.tests.size() == 3);
  CHECK(claim.tests[0].endpoint == Endpoint::kMacro);
  CHECK(claim.tests[1].n == 10'000);
  CHECK(claim.tests[2].within_margin);
  CHECK_FALSE(claim.tests[2].certified);
}

TEST_CASE("what there is decides where there is neither loss nor macro average", "[report]") {
  CHECK(verdict_of({kTaskInside}) == Verdict::kEquivalent);
  CHECK(verdict_of({kTaskOpen}) == Verdict::kInconclusive);
  CHECK(verdict_of({test(Endpoint::kBpb, 0, 0.001)}) == Verdict::kEquivalent);
  CHECK(verdict_of({test(Endpoint::kBpb, 0, 0.003)}) == Verdict::kInconclusive);
  CHECK(verdict_of({}) == Verdict::kInconclusive);
}

TEST_CASE("any difference beyond its margin makes the claim DIFFERENT, after Holm", "[report]") {
  CHECK(verdict_of({kLossBeyond, kMacroInside}) == Verdict::kDifferent);
  const Claim claim = judged({kLossInside, kMacroInside, kTaskBeyond});
  CHECK(claim.verdict == Verdict::kDifferent);
  REQUIRE(claim.decided_by());
  CHECK(claim.decided_by()->estimate == -5);
  Test weak = kTaskBeyond;
  weak.p = 0.03;  // alone significant, among eight not
  std::vector<Test> many(8, kTaskInside);
  many[0] = weak;
  many.push_back(kMacroInside);
  CHECK(verdict_of(many) == Verdict::kEquivalent);
}

TEST_CASE("a significant difference within the margin is negligible, an unbounded one open",
          "[report]") {
  CHECK(verdict_of({test(Endpoint::kLoss, 0.004, 0.001, 0.001)}) == Verdict::kDifferentNegligible);
  CHECK(verdict_of({kMacroInside, test(Endpoint::kTask, 0.8, 0.5, 0.01)}) ==
        Verdict::kInconclusive);
}

TEST_CASE("what is equal but too little to certify is CONSISTENT", "[report]") {
  Test equal = test(Endpoint::kMacro, 0, 3);
  equal.equal_bits = true;
  CHECK(verdict_of({equal}) == Verdict::kConsistent);
  equal.too_few = true;
  CHECK(verdict_of({equal}) == Verdict::kConsistent);
  equal.equal_bits = false;
  CHECK(verdict_of({equal}) == Verdict::kInconclusive);
}

TEST_CASE("a confound or an unknown fact caps a claim, a difference stays one", "[report]") {
  Conditions capped = conditions();
  capped.caps = {"batch size is not known of B"};
  const Claim claim = judge(Scope::kModels, {kLossInside}, capped);
  CHECK(claim.verdict == Verdict::kConsistent);
  CHECK(claim.sentence.find("batch size is not known of B") != std::string::npos);
  CHECK(judge(Scope::kModels, {kLossBeyond}, capped).verdict == Verdict::kDifferent);
}

TEST_CASE("a claim states the test that decided it: numbers, n, runs and what it excludes",
          "[report]") {
  Test groups = kLossInside;
  groups.k_a = 6;
  groups.k_b = 5;
  const Claim claim = judged({groups}, Scope::kSetups);
  for (const char* part : {"The two setups", "+0.001 units", "-0.001 to 0.003", "6 and 5 runs",
                           "0.003 units or more is excluded with 95 %", "±0.01 units"})
    CHECK(claim.sentence.find(part) != std::string::npos);
  CHECK(claim.tests[0].excludes == 0.003);
}

TEST_CASE("power is that of equal sides with such an interval", "[report]") {
  Test loss = test(Endpoint::kLoss, 0.008, 1.6448536 * 0.004, 0.1);
  CHECK(*judged({loss}).tests[0].power == Approx(0.6075).epsilon(1e-3));
  loss.interval90 = {-0.01, 0.03};
  CHECK(*judged({loss}).tests[0].power == 0);
}

TEST_CASE("without repeats nothing is claimed about the setups", "[report]") {
  const Claim claim = judged({}, Scope::kSetups);
  CHECK(claim.verdict == Verdict::kInconclusive);
  CHECK(claim.sentence.find("one run a side") != std::string::npos);
  CHECK(claim.stronger.find("report plan") != std::string::npos);
}

TEST_CASE("the strongest claim gives the verdict", "[report]") {
  const auto scope_of = [](const std::vector<Claim>& claims) { return strongest(claims)->scope; };
  const Claim equal = claim(Scope::kModels, Verdict::kEquivalent);
  const Claim other = claim(Scope::kModels, Verdict::kDifferent);
  CHECK(scope_of({equal, claim(Scope::kSetups, Verdict::kEquivalent)}) == Scope::kSetups);
  CHECK(scope_of({equal, claim(Scope::kSetups, Verdict::kInconclusive)}) == Scope::kModels);
  CHECK(scope_of({equal, claim(Scope::kSetups, Verdict::kDifferent)}) == Scope::kSetups);
  CHECK(scope_of({other, claim(Scope::kSetups, Verdict::kInconclusive, false)}) == Scope::kModels);
  // Repeats tell how much two runs differ by chance: one pair does not go before them.
  CHECK(scope_of({other, claim(Scope::kSetups, Verdict::kInconclusive)}) == Scope::kSetups);
}

TEST_CASE("swapping the sides changes no verdict", "[report]") {
  for (const auto& one : {kLossInside, kLossOpen, kLossBeyond, kMacroOpen, kTaskBeyond}) {
    Test swapped = one;
    swapped.estimate = -one.estimate;
    swapped.interval90 = {-one.interval90.high, -one.interval90.low};
    swapped.interval95 = {-one.interval95.high, -one.interval95.low};
    CHECK(verdict_of({swapped}) == verdict_of({one}));
  }
}

TEST_CASE("damaged records decide before all else, then a fatal mismatch", "[report]") {
  ParityReport report = checkpoints();
  add_mismatch(report, MismatchClass::kFatal);
  ParityReport damaged = report;
  damaged.damage = {"A: step 3: the loss is missing or not finite"};
  decide(damaged);
  CHECK(damaged.verdict == Verdict::kInvalidData);
  CHECK(damaged.reason == "A: step 3: the loss is missing or not finite.");
  decide(report);
  CHECK(report.verdict == Verdict::kNotComparable);
  CHECK(report.reason == "some.key (1 and 2): A reason.");
  CHECK(report.claims.empty());

  ParityReport tasks = checkpoints();
  tasks.tasks->invalid = {"a_task: B lacks 3 instances"};
  decide(tasks);
  CHECK(tasks.verdict == Verdict::kInvalidData);
  ParityReport prompts = checkpoints();
  prompts.tasks->mismatched = {"a_task: other prompts"};
  decide(prompts);
  CHECK(prompts.verdict == Verdict::kNotComparable);
}

TEST_CASE("equal bits are IDENTICAL, and the claim is identity", "[report]") {
  ParityReport report = checkpoints();
  decide(report);
  CHECK(report.verdict == Verdict::kIdentical);
  CHECK(report.claim == "identity");
  CHECK(report.reason.find("2000 scores of options") != std::string::npos);

  ParityReport other = checkpoints();
  --other.tasks->tasks[0].agreement.equal_bits;
  decide(other);
  CHECK(other.verdict == Verdict::kEquivalent);
  CHECK(other.claim == "models");
}

TEST_CASE("evaluations of two different checkpoints are a claim about two models at best",
          "[report]") {
  ParityReport report = checkpoints();
  report.kind = Kind::kOutcome;
  --report.tasks->tasks[0].agreement.equal_bits;
  decide(report);
  CHECK(report.verdict == Verdict::kEquivalent);
  CHECK(report.claim == "models");
  REQUIRE(report.claims.size() == 2);
  CHECK(report.claims[1].verdict == Verdict::kInconclusive);
  CHECK(report.claims[1].tests.empty());
}

TEST_CASE("a batch size that no record tells caps the verdict and is named", "[report]") {
  ParityReport report = checkpoints();
  --report.tasks->tasks[0].agreement.equal_bits;
  report.gate.unknown = {{.key = "global_train_batch_size", .a = "2048", .reason = "Another."}};
  ParityReport assumed = report;
  decide(report);
  CHECK(report.verdict == Verdict::kConsistent);
  CHECK(report.reason.find("global_train_batch_size is not known of B") != std::string::npos);
  CHECK(report.caveats.back().find("--assume 'global_train_batch_size=2048'") != std::string::npos);
  assumed.gate.unknown[0].assumed = "2048";
  decide(assumed);
  CHECK(assumed.verdict == Verdict::kEquivalent);
}

TEST_CASE("power takes what decimals hide for no chance, and from the margin", "[report]") {
  constexpr double kError = 0.004, kHidden = 0.003;
  Test logged = test(Endpoint::kLoss, 0, 1.6448536 * kError + kHidden);
  logged.hidden = kHidden;
  const Test exact = test(Endpoint::kLoss, 0, 1.6448536 * kError);
  Conditions narrower = conditions();
  narrower.margins.loss.value -= kHidden;
  CHECK(*judged({logged}).tests[0].power ==
        Approx(*judge(Scope::kModels, {exact}, narrower).tests[0].power));
}

TEST_CASE("a test of too few values is no difference, whatever its p", "[report]") {
  Test few = kTaskBeyond;
  few.too_few = true;
  CHECK(verdict_of({kLossInside, kMacroInside, few}) == Verdict::kEquivalent);
}

TEST_CASE("a test of too few values tells no power", "[report]") {
  Test few = kLossInside;
  few.too_few = true;
  CHECK_FALSE(judged({few}).tests[0].power);
}

TEST_CASE("a primary endpoint that the repeats lack keeps a claim from EQUIVALENT", "[report]") {
  Conditions of_setups = conditions();
  of_setups.untested = {"macro average"};
  CHECK(judge(Scope::kSetups, {kLossInside}, of_setups).verdict == Verdict::kConsistent);
}

TEST_CASE("EQUIVALENT is decided by the primary test that excludes least", "[report]") {
  const Claim claim = judged({kLossInside, kMacroInside, kTaskOpen});
  REQUIRE(claim.decided_by());
  CHECK(claim.decided_by()->endpoint == Endpoint::kMacro);
}

TEST_CASE("of two claims that say nothing the one that was tested gives the verdict", "[report]") {
  const std::vector<Claim> claims = {claim(Scope::kModels, Verdict::kInconclusive),
                                     claim(Scope::kSetups, Verdict::kInconclusive, false)};
  CHECK(strongest(claims)->scope == Scope::kModels);
}
