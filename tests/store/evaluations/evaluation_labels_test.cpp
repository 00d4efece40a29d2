#include "store/evaluations/evaluation_labels.h"

#include "support/catch.h"

namespace olmo::store {

TEST_CASE("a model is called by the end of its path", "[store]") {
  const auto name = [](const std::string& path) {
    EvaluationEntry entry;
    entry.evaluation_id = "id";
    entry.record.checkpoint = path;
    return model_of(entry);
  };
  CHECK(name("/models/OLMo-1B-hf/") == "OLMo-1B-hf");
  CHECK(name("runs/a/step100") == "a/step100");
  CHECK(name("step100") == "step100");
  CHECK(name("") == "id");
}

TEST_CASE("a record that says that it runs is not believed", "[store]") {
  CHECK(status_text("running") == "running by its record");
  CHECK(status_text("finished") == "finished");
}

}  // namespace olmo::store
