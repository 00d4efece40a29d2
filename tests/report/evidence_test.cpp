#include "report/evidence.h"

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

TEST_CASE("repeats without evaluations leave the macro average of the setups open", "[report]") {
  Test loss{.endpoint = Endpoint::kLoss, .name = "loss"};
  Test macro{.endpoint = Endpoint::kMacro, .name = "macro average"};
  loss.primary = macro.primary = true;
  CHECK(primary_missing({loss, macro}, {loss}) == std::vector<std::string>{"macro average"});
  CHECK(primary_missing({loss, macro}, {macro, loss}).empty());
}
