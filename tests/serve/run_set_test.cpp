#include "serve/run_set.h"

#include <set>

#include "serve/served_runs.h"
#include "support/catch.h"

namespace olmo::serve {
namespace {

struct TwoRuns {
  TwoRuns() : a(folder / "a", "same", 2), b(folder / "b", "same", 2), site({folder.path()}) {}
  RunSet chosen(const std::vector<std::string>& keys) {
    return chosen_runs(site.catalog(), {.path = "/curves", .query = {{"run", keys}}});
  }
  std::string key(const test::ServedRun& run) { return test::key_of(site, run.id()); }

  test::TemporaryDirectory folder;
  test::ServedRun a, b;
  test::KnownSite site;
};

}  // namespace

TEST_CASE("runs of the same name are told apart by their ids", "[serve]") {
  TwoRuns runs;
  const RunSet set = runs.chosen({runs.key(runs.b), runs.key(runs.a), runs.key(runs.b)});
  REQUIRE(set.runs.size() == 2);
  CHECK(set.runs[0].label == "same (" + runs.b.id() + ")");
  CHECK(set.runs[1].label == "same (" + runs.a.id() + ")");
  CHECK(set.runs[0].look != set.runs[1].look);
  CHECK(runs.chosen({runs.key(runs.a)}).runs[0].label == "same");
}

TEST_CASE("a run that is not there is left out with a sentence", "[serve]") {
  TwoRuns runs;
  const RunSet set = runs.chosen({"20200101T000000-abc~123456", runs.key(runs.a)});
  CHECK(set.runs.size() == 1);
  REQUIRE(set.sentences.size() == 1);
  CHECK(set.sentences[0].find("There is no run 20200101T000000-abc~123456 in the folders") == 0);
  CHECK_THROWS_AS(runs.chosen({"nothing"}), NotFound);
}

TEST_CASE("looks of a hundred runs repeat only after each colour had each dash", "[serve]") {
  const test::TemporaryDirectory folder;
  std::vector<std::unique_ptr<test::ServedRun>> runs;
  std::vector<std::string> keys;
  for (int i = 0; i < 36; ++i) {
    const std::string name = "run" + std::to_string(i);
    runs.push_back(std::make_unique<test::ServedRun>(folder / name, name, 1));
  }
  test::KnownSite site({folder.path()});
  for (const auto& run : runs) keys.push_back(test::key_of(site, run->id()));
  const RunSet set =
      chosen_runs(site.catalog(), {.path = "/curves", .query = {{"run", keys}}, .parts = {}});
  std::set<std::string> looks;
  for (std::size_t i = 0; i < 35; ++i) looks.insert(set.runs.at(i).look);
  CHECK(looks.size() == 35);
  CHECK(set.runs.at(35).look == set.runs.at(0).look);
}

}  // namespace olmo::serve
