#include "serve/scored_task.h"

#include "serve/evaluated_run.h"
#include "support/catch.h"

namespace olmo::serve {

TEST_CASE("instances of a scored task have what was chosen and by how much", "[serve]") {
  const test::TemporaryDirectory folder;
  test::ServedRun run(folder / "a", "first", 2);
  const std::string id =
      test::evaluate(run, 2, [](const eval::Example& example) { return example.label; });
  test::KnownSite site({folder.path()});
  const auto task = open_task(site.catalog(), test::key_of(site, run.id()), id, "arc_easy");
  CHECK(task.name() == "first, step 2");
  const auto instances = read_instances(task);
  REQUIRE_FALSE(instances.empty());
  for (const Instance& instance : instances) {
    CHECK(instance.right());
    CHECK(instance.margin == 1);
    CHECK(instance.options >= 3);
  }
}

TEST_CASE("instances of an evaluation that was altered are not shown", "[serve]") {
  test::Evaluated evaluated;
  CHECK(evaluated.get("/instances").status == 200);
  evaluated.run.db().records().write(
      {{"UPDATE evaluation_options SET rank = 3 - rank WHERE rank < 3 AND evaluation_id = ?",
        {evaluated.right}}});
  CHECK(evaluated.get("/instances").status == 200);  // another one
  const Response beside = evaluated.get("/instances", evaluated.beside());
  CHECK(beside.status == 422);
  CHECK(beside.body.find("arc_easy: its rows") != std::string::npos);
  CHECK(evaluated.get("/instance", {{"doc", {"0"}}, {"evaluation", {evaluated.wrong}}}).status ==
        200);
}

}  // namespace olmo::serve
