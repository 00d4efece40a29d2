#include "report/evaluations/gathered_tasks.h"

#include "report/evaluated_side.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

using test::EvaluatedSide;

constexpr const char* kBf16 = R"({"precision":"amp_bf16"})";

std::vector<std::string> names_of(const EvaluationData& data) {
  std::vector<std::string> names;
  for (const auto& task : data.tasks) names.push_back(task.task);
  return names;
}

bool any(const EvaluatedTask&) { return true; }

}  // namespace

TEST_CASE("evaluations of a step are told apart by what computed them", "[report]") {
  EvaluatedSide side;
  side.add(10, "arc");
  side.add(10, "arc", -1, kBf16);
  side.add(20, "arc");
  side.add(10, "boolq");
  const auto models = by_model(10, side.records().evaluations);
  REQUIRE(models.size() == 2);
  CHECK(models[0].size() == 2);
  CHECK(models[0][0]->record.policy != kBf16);
  CHECK(models[1][0]->record.policy == kBf16);
}

TEST_CASE("each task is taken of the latest evaluation that has it as it is wanted", "[report]") {
  EvaluatedSide side;
  side.add(10, "boolq");
  side.add(10, "arc", -1);
  side.add(10, "arc", -1.5);
  const auto models = by_model(10, side.records().evaluations);
  REQUIRE(models.size() == 1);
  const auto all = gathered_tasks(side.records(), models[0], any);
  CHECK(names_of(all) == std::vector<std::string>{"arc", "boolq"});
  CHECK(all.tasks[0].logprobs[0] == -1.5);
  const auto some = gathered_tasks(side.records(), models[0], [](const EvaluatedTask& task) {
    return task.task == "arc" && task.logprobs[0] == -1;
  });
  CHECK(names_of(some) == std::vector<std::string>{"arc"});
}

TEST_CASE("nothing is gathered of what was altered", "[report]") {
  EvaluatedSide side;
  side.add(10, "arc");
  side.alter_step(10);
  const auto models = by_model(10, side.records().evaluations);
  CHECK(gathered_tasks(side.records(), models[0], any).tasks.empty());
}

}  // namespace olmo::report
