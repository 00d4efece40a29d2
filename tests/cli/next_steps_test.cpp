#include "cli/next_steps.h"

#include "support/catch.h"

namespace olmo::cli {

TEST_CASE("what to do next is commands to copy, with what they do where there is room", "[cli]") {
  const std::vector<NextStep> steps = {{{"eval", "runs/a"}, "its scores"},
                                       {{"report", "run", "my runs/a"}, "a page of it"}};
  CHECK(next_lines(steps, "olmo-harness", 80) ==
        "Next:\n"
        "  olmo-harness eval runs/a             # its scores\n"
        "  olmo-harness report run 'my runs/a'  # a page of it\n");
  CHECK(next_lines(steps, "olmo-harness", 40) ==
        "Next:\n"
        "  olmo-harness eval runs/a\n"
        "  olmo-harness report run 'my runs/a'\n");
}

}  // namespace olmo::cli
