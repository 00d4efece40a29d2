#include "serve/instance_texts.h"

#include "serve/evaluated_run.h"
#include "support/catch.h"

namespace olmo::serve {

TEST_CASE("texts of instances are kept, and looked for again where the data were missing",
          "[serve]") {
  InstanceTexts texts;
  {
    const test::DataCache empty(false);
    const auto found = texts.find("arc_easy", "olmo");
    CHECK(found.task == nullptr);
    CHECK_FALSE(found.problem.empty());
  }
  const test::DataCache cache;
  const auto found = texts.find("arc_easy", "olmo");
  REQUIRE(found.task != nullptr);
  CHECK(texts.find("arc_easy", "olmo").task == found.task);
}

TEST_CASE("a task that is not defined has no texts", "[serve]") {
  InstanceTexts texts;
  CHECK(texts.find("no_such_task", "olmo").problem.find("no_such_task") != std::string::npos);
}

}  // namespace olmo::serve
