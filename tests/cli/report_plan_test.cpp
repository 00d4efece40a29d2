// `report plan`: what a claim takes, from options and from a recorded run.
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "support/catch.h"
#include "support/simulated_side.h"

namespace olmo::test {
namespace {

struct Planning : Scene {
  [[nodiscard]] Ended plan(Words words) const {
    words.insert(words.begin(), {"report", "plan"});
    return harness(*this / "log", words);
  }
  [[nodiscard]] nlohmann::json json(Words words) const {
    words.push_back("--json");
    const auto ended = plan(words);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out);
  }
};

/// Records a run of each loss, those after the first as repeats of it. Returns their ids.
Words add_repeats(store::RecordDatabase& records, const std::vector<double>& losses) {
  Words ids;
  for (const double loss : losses) {
    SimulatedRun run{.losses = std::vector<double>(50, loss)};
    run.seed = ids.size() + 1;
    if (!ids.empty()) run.tags = {"noise:seed"};
    ids.push_back(write_run(records, run, std::to_string(run.seed) + ".csv"));
  }
  return ids;
}

}  // namespace

TEST_CASE("a plan is a table of power, and says how many runs are enough", "[cli]") {
  const Planning planning;
  const auto ended = planning.plan({"--loss-deviation", "0.003"});
  REQUIRE(ended.code == 0);
  CHECK(ended.out.find("Claim about the setups") == 0);
  CHECK(ended.out.find("6 runs a side certify") != std::string::npos);
}

TEST_CASE("a plan takes tasks, their discordance and the deviation from a run and its repeats",
          "[cli]") {
  const Planning planning;
  const auto path = planning / "side.db";
  Words ids;
  {
    store::RecordDatabase records(path, store::OpenMode::kCreate);
    ids = add_repeats(records, {2.0001, 2.0021, 2.0041});
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::vector<char> right(200, 1);
      std::fill_n(right.begin(), 2 * (i + 1), char{0});
      write_evaluation(records, "weights of " + ids[i], {{"arc_easy", right}}, ids[i]);
    }
  }
  const auto plan = planning.json({path.string() + ":" + ids[0]});
  REQUIRE(plan["tables"].size() == 1);
  CHECK(plan["tables"][0]["margin"].get<std::string>().find("0.004 nats") != std::string::npos);
  REQUIRE(plan["tasks"].size() == 1);
  CHECK(plan["tasks"][0]["task"] == "arc_easy");
  CHECK(plan["tasks"][0]["instances"] == 200);
  // Two of 200 answers against the second seed, four against the third.
  CHECK(plan["tasks"][0]["discordance"].get<double>() == Approx(0.015));
}

TEST_CASE("a plan counts for each task the models that answered it, in whatever evaluations",
          "[cli]") {
  const Planning planning;
  const auto path = planning / "side.db";
  Words ids;
  {
    store::RecordDatabase records(path, store::OpenMode::kCreate);
    ids = add_repeats(records, {2.001, 2.002, 2.003});
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::vector<char> right(100, 1);
      std::fill_n(right.begin(), 4 * i, char{0});
      const std::string weights = "weights of " + ids[i];
      write_evaluation(records, weights, {{"arc_easy", right}}, ids[i]);
      if (i < 2) write_evaluation(records, weights, {{"boolq", right}}, ids[i]);
    }
  }
  const auto plan = planning.json({path.string() + ":" + ids[0]});
  const auto discordance_of = [&](const std::string& name) {
    for (const auto& task : plan["tasks"])
      if (task["task"] == name) return task["discordance"].get<double>();
    return -1.0;
  };
  CHECK(discordance_of("arc_easy") == Approx(0.06));  // 4 and 8 of 100
  CHECK(discordance_of("boolq") == Approx(0.04));     // of one model
}

TEST_CASE("of repeats that are one training a plan counts one", "[cli]") {
  const Planning planning;
  const auto path = planning / "side.db";
  store::RecordDatabase records(path, store::OpenMode::kCreate);
  const auto add = [&](const std::string& name, double loss, std::vector<std::string> tags) {
    SimulatedRun run{.losses = std::vector<double>(50, loss)};
    run.tags = std::move(tags);
    return write_run(records, run, name);
  };
  const auto plan = [&, compared = add("1.csv", 2.0001, {})] {
    return planning.json({path.string() + ":" + compared})["tables"][0]["margin"];
  };
  add("2.csv", 2.0021, {"noise"});
  const auto once = plan();
  add("copy.csv", 2.0021, {"noise"});
  CHECK(plan() == once);
}

TEST_CASE("a repeat whose record was altered is left out of a plan by its name", "[cli]") {
  const Planning planning;
  const auto path = planning / "side.db";
  store::RecordDatabase records(path, store::OpenMode::kCreate);
  std::vector<std::string> ids;
  for (const double loss : {2.0001, 2.0021, 2.5}) {
    SimulatedRun run{.losses = std::vector<double>(50, loss)};
    if (!ids.empty()) run.tags = {"noise"};
    ids.push_back(write_run(records, run, std::to_string(ids.size()) + ".csv"));
  }
  const Words words{path.string() + ":" + ids[0]};
  const auto all = planning.json(words)["tables"][0]["margin"];
  records.connection().execute("UPDATE runs SET seed = seed + 1 WHERE run_id = '" + ids[2] + "'");
  const auto ended = planning.plan(words);
  CHECK(ended.code == 0);
  CHECK(ended.says("the repeat " + ids[2] + " is left out: its record is damaged"));
  CHECK(planning.json(words)["tables"][0]["margin"] != all);
}

TEST_CASE("a plan of nothing, or of impossible sizes, is refused in one sentence", "[cli]") {
  const Planning planning;
  for (const Words& words : {Words{},
                             {"--instances", "0"},
                             {"--instances", "arc_easy=many"},
                             {"--loss-deviation", "-1"},
                             {"--loss-deviation", "0.1", "--margin", "loss=0"},
                             {"--instances", "100", "--discordance", "200"}}) {
    const auto ended = planning.plan(words);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
  }
}

}  // namespace olmo::test
