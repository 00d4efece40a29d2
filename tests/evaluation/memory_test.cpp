#include "evaluation/memory.h"

#include <fstream>

#include "eval/selection.h"
#include "evaluation/evaluators.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::evaluation {
namespace {

config::TrainConfig config_of(const std::string& evaluators) {
  config::TrainConfig config;
  config.model.max_sequence_length = 100;
  config.device_eval_batch_size = 4;
  config.evaluators.text = evaluators;
  return config;
}

std::int64_t rows_of(const std::string& evaluators) {
  return memory_of(config_of(evaluators)).rows;
}

/// A plan over a token file of so many instances of 100 tokens.
EvaluationPlan plan_of(const test::TemporaryDirectory& folder, std::int64_t instances) {
  const auto file = folder / "tokens.npy";
  std::ofstream(file, std::ios::binary)
      << std::string(static_cast<std::size_t>(instances) * 200, 0);
  EvaluationPlan plan;
  plan.max_length = 100;
  eval::Selection selection;
  selection.add(
      eval::suite_of_token_files("x", {{"x", {file.string()}}}, data::TokenDtype::kUint16));
  plan.suites = selection.suites;
  return plan;
}

}  // namespace

TEST_CASE("a config's evaluators run over a whole forest, or over what their subset has",
          "[evaluation]") {
  const std::int64_t forest = eval::QueueOptions().forest_rows;
  const auto with = [](const std::string& subset) {
    return R"({"label": "x", "data": {"paths": ["a"]}, "subset_num_batches": )" + subset + "}";
  };
  CHECK(rows_of("[]") == 0);
  CHECK(rows_of("[" + with("null") + "]") == forest);
  CHECK(rows_of("[" + with("3") + "]") == 3 * 4 * 100);
  CHECK(rows_of("[" + with("3") + "," + with("-1") + "]") == forest);
  CHECK(rows_of("[" + with("1099511627776") + "]") == forest);
}

TEST_CASE("a task's requests are as long as OLMo's, whatever the model's sequences are",
          "[evaluation]") {
  CHECK(rows_of(R"([{"label": "x", "type": "downstream", "subset_num_batches": 1,
                     "device_eval_batch_size": 1}])") == eval::kOlmoMaxLength);
  const test::TemporaryDirectory folder;
  auto plan = plan_of(folder, 2000);
  plan.olmo_max_length = 100'000;
  CHECK(memory_of(plan).rows == eval::QueueOptions().forest_rows);  // it has no tasks
}

TEST_CASE("a plan runs over the rows that its data have, up to a forest", "[evaluation]") {
  const test::TemporaryDirectory folder;
  CHECK(memory_of(plan_of(folder, 2)).rows == 200);
  CHECK(memory_of(plan_of(folder, 2000)).rows == eval::QueueOptions().forest_rows);
  auto plan = plan_of(folder, 2000);
  plan.only_documents = {7, 11, 13};
  CHECK(memory_of(plan).rows == 300);
  plan.max_length = 100'000;  // a sequence that is longer goes alone
  plan.only_documents.reset();
  CHECK(memory_of(plan).rows == 100'000);
  CHECK(memory_of(plan).texts > 0);
}

}  // namespace olmo::evaluation
