#include "eval/asked.h"

#include "task_data.h"

#include "support/catch.h"

using namespace olmo;
using namespace olmo::eval;
using namespace olmo::test;

namespace {

std::vector<OptionRow> rows_of(const Example& example) {
  std::vector<OptionRow> rows(example.options.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].cont_id = static_cast<std::int64_t>(i);
    rows[i].request_hash =
        request_hash(example.options[i].context, example.options[i].continuation);
  }
  return rows;
}

}  // namespace

TEST_CASE("an instance rendered again is what its rows were scored for", "[eval]") {
  const auto task = render_again(load_catalog(), "arc_easy", "olmo", task_data(), 2);
  REQUIRE(task.examples.size() == 2);
  const Example* example = find_example(task, 1);
  REQUIRE(example != nullptr);
  CHECK(was_asked(*example, rows_of(*example)));
  CHECK(find_example(task, 2) == nullptr);
}

TEST_CASE("an instance whose text has changed since is told from the one that was asked",
          "[eval]") {
  auto example = render_again(load_catalog(), "arc_easy", "olmo", task_data(), 1).examples.front();
  auto rows = rows_of(example);
  example.options.back().continuation += "!";
  CHECK_FALSE(was_asked(example, rows));
  rows.back().cont_id = 1000;  // beyond its options
  CHECK_FALSE(was_asked(example, rows));
}
