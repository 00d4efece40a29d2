#include <nlohmann/json.hpp>

#include "cli/said.h"
#include "cli/training.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

struct TwoRuns : Scene {
  TwoRuns() {
    REQUIRE(train("a", {"stop_at=3", "run_name=first"}).code == 0);
    REQUIRE(train("b", {"stop_at=3", "run_name=second", "optimizer.learning_rate=0.5"}).code == 0);
  }
  [[nodiscard]] Ended diff(const std::string& b, const Words& more = {}) const {
    Words words = {"runs", "diff", (*this / "a").string(), (*this / b).string()};
    words.insert(words.end(), more.begin(), more.end());
    return harness(*this / "log", words);
  }
};

Words whats(const Json& rows) {
  Words found;
  for (const auto& row : rows) found.push_back(row.at("what"));
  return found;
}

}  // namespace

TEST_CASE("runs diff lists what decides the result apart from what does not, and where bits part",
          "[cli]") {
  const TwoRuns runs;
  const auto ended = runs.diff("b", {"--json"});
  CHECK(ended.code == 5);
  const Json found = Json::parse(ended.out);
  CHECK(found["equal"] == false);
  CHECK(whats(found["differences"]["config"]) == Words{"optimizer.learning_rate"});
  CHECK(whats(found["differences"]["config_other"]) == Words{"run_name", "save_folder"});
  CHECK(found["differences"]["inputs"].empty());
  CHECK(found["differences"]["environment"].empty());
  CHECK(found["records"]["first_different"] == 1);
  CHECK(found["records"]["first_field"] == "lr");
  CHECK(found["records"]["common_steps"] == 3);
  const auto text = runs.diff("b");
  CHECK(text.code == 5);
  CHECK(text.out.find("The records part at step 1, in lr") != std::string::npos);
  CHECK(text.out.find("olmo-harness report parity " + (runs / "a").string()) != std::string::npos);
}

TEST_CASE("runs diff of a run and itself finds nothing", "[cli]") {
  const TwoRuns runs;
  const auto ended = runs.diff("a");
  CHECK(ended.code == 0);
  CHECK(ended.out.find("All bits of the 3 common steps are equal.") != std::string::npos);
}

TEST_CASE("runs diff says which limit differs though all that was computed is equal", "[cli]") {
  const Scene scene;
  for (const char* limit : {"1000.0", "2000.0"})
    REQUIRE(scene.train(limit, {"stop_at=3", std::string("max_grad_norm=") + limit}).code == 0);
  const auto ended = harness(
      scene / "log", {"runs", "diff", (scene / "1000.0").string(), (scene / "2000.0").string()});
  CHECK(ended.code == 5);
  CHECK(ended.out.find("All bits that the 3 common steps computed are equal, though") !=
        std::string::npos);
  CHECK(ended.out.find("(1000.0 and 2000.0) differs") != std::string::npos);
  CHECK(ended.out.find("All bits of the") == std::string::npos);
}

/// Returns the database of an imported log.
std::string import_log(const TemporaryDirectory& folder, const std::string& name,
                       const std::string& rows) {
  const auto log = (folder / (name + ".csv")).string();
  auto database = (folder / (name + ".db")).string();
  std::ofstream(log) << rows;
  REQUIRE(say({"runs", "import", log, "--db", database}).code == 0);
  return database;
}

TEST_CASE("runs diff of logs compares what they log", "[cli]") {
  const TemporaryDirectory folder;
  const auto imported = [&](const std::string& name, const std::string& last) {
    return import_log(folder, name, "step,loss,lr\n1,3.5,0.1\n2," + last + ",0.1\n");
  };
  const auto a = imported("a", "3.25"), b = imported("b", "3.0"), same = imported("c", "3.25");
  const Said differ = say({"runs", "diff", a, b, "--json"});
  CHECK(differ.code == 5);
  const Json found = Json::parse(differ.out);
  CHECK(found["equal"] == false);
  CHECK(found["records"]["first_different"] == 2);
  CHECK(found["records"]["first_field"] == "ce_loss");
  CHECK(found["records"]["equal_steps"] == 1);
  CHECK(say({"runs", "diff", a, b}).out.find("part at step 2, in ce_loss") != std::string::npos);
  CHECK(say({"runs", "diff", a, same}).code == 0);
  const auto diverged = imported("d", "nan");
  CHECK(say({"runs", "diff", a, diverged}).code == 5);
  CHECK(say({"runs", "diff", diverged, a}).code == 5);
  CHECK(say({"runs", "diff", diverged, imported("e", "nan")}).code == 0);
}

TEST_CASE("logs of other steps are not equal", "[cli]") {
  const TemporaryDirectory folder;
  const auto imported = [&](const std::string& name, const std::string& last) {
    return import_log(folder, name, "step,loss\n1,3.5\n" + last + ",3.25\n");
  };
  const Said said = say({"runs", "diff", imported("a", "2"), imported("b", "3"), "--json"});
  CHECK(said.code == 5);
  CHECK(Json::parse(said.out)["equal"] == false);
}

}  // namespace olmo::test
