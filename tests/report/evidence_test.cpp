#include "report/evidence.h"

#include "core/hash.h"
#include "support/catch.h"

using namespace olmo::report;

TEST_CASE("training losses of independent trainings are no pair of the two models", "[report]") {
  ParityReport report;
  report.trajectory.emplace().test = Test{.name = "loss"};
  CHECK(tests_of_models(report).size() == 1);
  report.kind = Kind::kOutcome;
  CHECK(tests_of_models(report).empty());
}

TEST_CASE("confounds and unknown facts cap, benign and assumed ones do not", "[report]") {
  ParityReport report;
  report.gate.mismatches = {{"seed", "1", "2", MismatchClass::kBenign, "Chance."},
                            {"optimizer.lr", "1", "2", MismatchClass::kConfound, "Other."}};
  report.gate.unknown = {{.key = "tokenizer", .if_different = MismatchClass::kFatal},
                         {.key = "data order", .assumed = "equal"},
                         {.key = "build", .if_different = MismatchClass::kBenign},
                         {.key = "global_train_batch_size", .a = "2048"}};
  CHECK(conditions_of(report).caps ==
        std::vector<std::string>{"optimizer.lr differs (1 and 2)", "tokenizer is not known",
                                 "global_train_batch_size is not known of B"});
}

TEST_CASE("many unknown facts cap by their number, beside what differs", "[report]") {
  ParityReport report;
  report.gate.mismatches = {{"optimizer.lr", "1", "2", MismatchClass::kConfound, "Other."}};
  for (int i = 0; i < 30; ++i) report.gate.unknown.push_back({.key = std::to_string(i)});
  CHECK(conditions_of(report).caps ==
        std::vector<std::string>{"optimizer.lr differs (1 and 2)",
                                 "30 facts are not known (the caveats name them)"});
}

TEST_CASE("curves of one trajectory that part cap, of independent trainings they do not",
          "[report]") {
  ParityReport report;
  report.trajectory.emplace().partings = {{Parting::Cause::kOtherData, 401, 1, 0}};
  CHECK(conditions_of(report).caps ==
        std::vector<std::string>{"the losses tell of other data from step 401 on"});
  report.kind = Kind::kOutcome;
  CHECK(conditions_of(report).caps.empty());
}

TEST_CASE("a limit that both sides have is told once", "[report]") {
  ParityReport report;
  const auto limited = [](const std::string& id, std::int64_t limit) {
    EvaluationData data;
    data.evaluation_id = id;
    data.sealed = true;
    data.tasks = {{.task = "arc", .asked = {.limit = limit}}};
    return data;
  };
  report.a.evaluation = limited("a", 5);
  report.b.evaluation = limited("b", 5);
  add_caveats(report);
  CHECK(report.caveats ==
        std::vector<std::string>{"The evaluations of both sides scored no more than 5 instances of "
                                 "arc: what follows holds for these."});
  report.caveats.clear();
  report.b.evaluation = limited("b", 6);
  add_caveats(report);
  CHECK(report.caveats.size() == 2);
}

TEST_CASE("a record that was not checked against its config is told, and caps unless it is old",
          "[report]") {
  ParityReport report;
  report.b.run.emplace().status = "finished";
  report.b.run->config = R"({"a key of a newer program": 1})";
  report.b.run->chain_format = olmo::kChainFormat;
  report.b.unchecked = "was not checked";
  REQUIRE(conditions_of(report).caps.size() == 1);
  CHECK(conditions_of(report).caps[0].find("the record of B was not checked against its config") ==
        0);
  add_caveats(report);
  CHECK(report.caveats == std::vector<std::string>{"The record of B was not checked."});
  report.b.run->chain_format = 1;
  CHECK(conditions_of(report).caps.empty());
}

TEST_CASE("a branch is told, with the checkpoint that it began from", "[report]") {
  ParityReport report;
  report.b.run.emplace().status = "finished";
  report.b.run->steps.step = {31};
  report.b.run->attempts.resize(1);
  add_caveats(report);
  CHECK(report.caveats.empty());
  report.b.run->attempts[0].resumed_from = "runs/a/step30";
  add_caveats(report);
  CHECK(report.caveats ==
        std::vector<std::string>{
            "B began at step 31, from runs/a/step30: nothing is said of the steps before."});
}

TEST_CASE("an audit that found something else is told of its side", "[report]") {
  ParityReport report;
  report.b.run.emplace().status = "finished";
  report.b.run->audits.resize(2);
  report.b.run->audits[0].verdict = "identical";
  report.b.run->audits[1].verdict = "different";
  report.b.run->audits[1].difference_step = 44;
  report.b.run->audits[1].difference = "ce_loss";
  add_caveats(report);
  CHECK(report.caveats ==
        std::vector<std::string>{
            "An audit of B found something else than its record has, at step 44: ce_loss."});
}

TEST_CASE("repeats without evaluations leave the macro average of the setups open", "[report]") {
  Test loss{.endpoint = Endpoint::kLoss, .name = "loss"};
  Test macro{.endpoint = Endpoint::kMacro, .name = "macro average"};
  loss.primary = macro.primary = true;
  CHECK(primary_missing({loss, macro}, {loss}) == std::vector<std::string>{"macro average"});
  CHECK(primary_missing({loss, macro}, {macro, loss}).empty());
}

TEST_CASE("a reader is told why equal losses are not IDENTICAL, and of one run given twice",
          "[report]") {
  ParityReport report;
  report.a.run.emplace().run_id = "one";
  report.b.run.emplace().run_id = "other";
  report.a.run->status = report.b.run->status = "finished";
  report.identity.known = true;
  report.identity.common_steps = report.identity.equal_steps = 3;
  add_caveats(report);
  CHECK(report.caveats.empty());
  SECTION("a value that no chain is over") {
    report.identity.first_different = 3;
    report.identity.first_field = "lr";
    add_caveats(report);
    REQUIRE(report.caveats.size() == 1);
    CHECK(report.caveats[0].find("step 3 differs first, in lr, which") != std::string::npos);
    report.caveats.clear();
    report.b.run->experiment_digest = "other";  // whose lr is another one
    add_caveats(report);
    CHECK(report.caveats.empty());
  }
  SECTION("one within the chain needs no words") {
    report.identity.first_different = 3;
    report.identity.first_field = "ce_loss";
    add_caveats(report);
    CHECK(report.caveats.empty());
  }
  SECTION("an operation") {
    TracedOperation& found = report.identity.operation.emplace();
    found.traced = 2;
    found.operation = "forward/loss";
    add_caveats(report);
    REQUIRE(report.caveats.size() == 1);
    CHECK(report.caveats[0].find("operation forward/loss of step 2") != std::string::npos);
  }
  SECTION("a run that disagrees with itself") {
    report.b.disagreement = "disagrees with itself: attempt 2";
    add_caveats(report);
    CHECK(report.caveats == std::vector<std::string>{"B disagrees with itself: attempt 2."});
  }
  SECTION("the same run") {
    report.b.run->run_id = "one";
    add_caveats(report);
    REQUIRE(report.caveats.size() == 1);
    CHECK(report.caveats[0].find("records of one run (one)") != std::string::npos);
  }
}

TEST_CASE("trainings that are the same are not IDENTICAL if any of their scores differ",
          "[report]") {
  ParityReport report;
  report.a.run.emplace().status = report.b.run.emplace().status = "finished";
  report.a.run->run_id = "one";
  report.trajectory.emplace();
  report.identity.known = true;
  report.identity.common_steps = report.identity.equal_steps = 3;
  CHECK(identical_sentence(report));
  report.unlike_scores = "the scores of arc at step 10";
  CHECK_FALSE(identical_sentence(report));
  add_caveats(report);
  REQUIRE(report.caveats.size() == 1);
  CHECK(report.caveats[0].find("the scores of arc at step 10 differ.") != std::string::npos);
}
