#include "evaluation/recorded_evaluation.h"

#include "core/error.h"
#include "support/catch.h"

namespace olmo::evaluation {
namespace {

/// Settings with one task, whose primary metric and metrics are these.
std::string settings_with(const std::string& primary, const std::string& metrics) {
  return R"({"tasks": [{"name": "t", "id": "t", "convention": "olmo", "category": "",
             "primary_metric": ")" +
         primary + R"(", "metrics": )" + metrics + "}]}";
}

std::string damage_of(const std::string& settings) {
  try {
    recorded_tasks(settings);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kDamaged);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a recorded task whose primary metric is none of its metrics is damage", "[evaluation]") {
  const std::string acc = R"([{"name": "acc", "score": "sum"}])";
  CHECK(recorded_tasks(settings_with("acc", acc)).at(0).metrics.size() == 1);
  CHECK_THAT(damage_of(settings_with("best", acc)), Catch::Contains("'best' is none of"));
  CHECK_THAT(damage_of(settings_with("acc", "[]")), Catch::Contains("'acc' is none of"));
  CHECK_THAT(damage_of(settings_with("acc", R"([{"name": "acc", "score": "luck"}])")),
             Catch::Contains("got 'luck'"));
  for (const char* settings : {"", "5", "{}", R"({"tasks": [5]})"})
    CHECK_THAT(damage_of(settings), Catch::Contains("not as they were written"));
}

}  // namespace olmo::evaluation
