#include <bit>
#include <cmath>
#include <iomanip>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "support/catch.h"

namespace olmo::test {

TEST_CASE("runs import puts another trainer's log beside our runs, or writes nothing", "[cli]") {
  const TemporaryDirectory folder;
  const std::string database = (folder / "other.db").string();
  const std::string log = (folder / "theirs.csv").string();
  const auto runs = [&](Words words) {
    words.insert(words.begin(), "runs");
    return harness(folder / "log", words);
  };
  std::ofstream(log) << "Step,my-run - train/CrossEntropyLoss,perplexity\n1,0.1,9\n2,,9\n1,x,9\n";
  const auto bad = runs({"import", log, "--db", database});
  CHECK(bad.code == 3);
  CHECK(bad.err.find(log + ":4: column 'my-run - train/CrossEntropyLoss' must be a number with a "
                           "decimal point, got 'x'") != std::string::npos);
  CHECK_FALSE(fs::exists(database));

  std::ofstream(log) << "Step,my-run - train/CrossEntropyLoss,perplexity\n1,0.1,9\n2,,9\n3,0.3,9\n";
  const auto missing = runs({"import", log, "--db", database, "--map", "lr=LR"});
  CHECK(missing.code == 2);
  CHECK(missing.err.find("has no column 'LR' for the lr") != std::string::npos);
  CHECK_FALSE(fs::exists(database));

  std::ofstream(folder / "config.json") << R"({"seed": 6198, "model": {"d_model": 4}})";
  const Words import = {"import", log,        "--db",
                        database, "--name",   "theirs",
                        "--tag",  "h100",     "--tokens-per-step",
                        "64",     "--config", (folder / "config.json").string(),
                        "--json"};
  const auto first = runs(import);
  REQUIRE(first.code == 0);
  const Json result = Json::parse(first.out);
  CHECK(result.at("steps") == 2);
  CHECK(result.at("rows_without_loss") == 1);
  CHECK(first.err.find("imported before") == std::string::npos);
  const auto again = runs(import);
  CHECK(again.code == 0);
  CHECK(again.err.find("was imported before, as run " + result.at("run_id").get<std::string>()) !=
        std::string::npos);

  const auto list = Json::parse(runs({"list", database, "--json"}).out).at("runs");
  REQUIRE(list.size() == 2);
  CHECK(list[0]["name"] == "theirs");
  CHECK(list[0]["step"] == 3);
  CHECK(list[0]["tokens"] == 192);
  CHECK(list[0]["ce_loss"] == 0.3);
  CHECK(list[0]["tags"] == "h100");
  const auto shown = Json::parse(runs({"show", database, "--json"}).out);
  CHECK(shown["config"]["seed"] == 6198);
  CHECK(shown["inputs"][0]["kind"] == "log");
  CHECK(shown["inputs"][0]["sha256"] == sha256_file(log).hex());
  const auto rows = runs({"export", database, "--table", "imported_steps"}).out;
  const Json row = Json::parse(rows.substr(0, rows.find('\n')));
  CHECK(std::bit_cast<std::uint64_t>(row.at("ce_loss").get<double>()) ==
        std::bit_cast<std::uint64_t>(0.1));
  CHECK(runs({"export", database, "--table", "energy"}).out.empty());
}

TEST_CASE("a run that was exported for TensorBoard or W&B comes back with its losses", "[cli]") {
  const Scene scene;
  REQUIRE(scene.train("run", {"stop_at=4"}).code == 0);
  const auto losses = [&](const std::string& database, const char* table) {
    const auto rows = harness(scene / "log", {"runs", "export", database, "--table", table}).out;
    std::vector<double> values;
    std::istringstream lines(rows);
    for (std::string line; std::getline(lines, line);)
      values.push_back(Json::parse(line).at("ce_loss").get<double>());
    return values;
  };
  const auto trained = losses((scene / "run").string(), "steps");
  REQUIRE(trained.size() == 4);
  REQUIRE(harness(scene / "log", {"runs", "tag", (scene / "run").string(), "repeat"}).code == 0);
  for (const bool wandb : {false, true}) {
    const std::string tool = wandb ? "wandb" : "tensorboard";
    INFO(tool);
    REQUIRE(harness(scene / "log", {"runs", "export", (scene / "run").string(), "--to", tool,
                                    (scene / tool).string()})
                .code == 0);
    std::string log;
    for (const auto& entry : fs::recursive_directory_iterator(scene / tool))
      if (entry.path().extension() == ".wandb" ||
          entry.path().filename().string().starts_with("events"))
        log = entry.path().string();
    const std::string database = (scene / (tool + ".db")).string();
    const auto ended = harness(scene / "log", {"runs", "import", log, "--db", database});
    INFO(ended.err);
    CHECK(ended.code == 0);
    auto expected = trained;
    if (!wandb)
      for (double& loss : expected) loss = static_cast<double>(static_cast<float>(loss));
    CHECK(losses(database, "imported_steps") == expected);
    const auto shown =
        Json::parse(harness(scene / "log", {"runs", "show", database, "--json"}).out);
    CHECK(shown["config"].contains("model") == wandb);
    CHECK((shown["tags"] == "repeat") == wandb);
    if (wandb) CHECK(shown["config"]["model"]["attention_dropout"] == 0);  // as OLMo's is not
    CHECK_FALSE(shown["config"].contains("olmo_harness"));                 // no setting
  }
}

TEST_CASE("what a binary log does not hold whole is told", "[cli]") {
  const TemporaryDirectory folder;
  const auto import = [&](const fs::path& log, const Words& more) {
    Words words = {"runs", "import", log.string()};
    words.insert(words.end(), more.begin(), more.end());
    return harness(folder / "log", words);
  };
  const fs::path data = fs::path(OLMO_TEST_DATA) / "import";
  const auto events = import(data / "events.out.tfevents.golden", {"--dry-run"});
  CHECK(events.says("2 token counts above 2^24, which an event file rounds: left out"));
  const std::string bytes = read_file(data / "run-golden.wandb");
  std::ofstream(folder / "cut.wandb", std::ios::binary) << bytes.substr(0, bytes.size() - 1);
  CHECK(import(folder / "cut.wandb", {"--dry-run"})
            .says("cut.wandb: ends within a record, which is left out"));
  const std::string running = bytes.substr(0, bytes.rfind("_runtime"));
  std::ofstream(folder / "live.wandb", std::ios::binary) << running;
  CHECK(import(folder / "live.wandb", {"--dry-run"})
            .says("live.wandb: tells no end of the run, which goes on or was killed"));
  const auto other = import(folder / "cut.wandb", {"--dry-run", "--format", "csv"});
  CHECK(other.code == 2);
  CHECK(other.says("cut.wandb: is in the format wandb, and --format says csv"));
}

TEST_CASE("docs/import.md shows what runs import --dry-run prints", "[cli]") {
  const TemporaryDirectory folder;
  const std::string log = (folder / "history.csv").string();
  std::ofstream(log) << "_step,train/global_step,train/CrossEntropyLoss,throughput/total_tokens,"
                        "throughput/device/tokens_per_second,System/gpu.0.temp,"
                        "eval/downstream/arc_easy_acc\n"
                        "0,1,11.2,4194304,9000,50,\n1,2,11.1,8388608,9100,51,\n2,2,,,,,0.25\n";
  const auto shown = harness(folder / "log", {"runs", "import", log, "--dry-run"});
  REQUIRE(shown.code == 0);
  const std::string page = read_file(OLMO_SOURCE_DIR "/docs/import.md");
  CHECK(page.find("<!-- example -->\n```\n" + shown.out + "```\n<!-- /example -->") !=
        std::string::npos);
  INFO(shown.out);
  CHECK(harness(folder / "log", {"runs", "import", log}).code == 2);  // without --db
}

TEST_CASE("imported curves are set against each other on one axis or not at all", "[cli]") {
  const TemporaryDirectory folder;
  const auto import = [&](const std::string& name, const std::string& header, int per_step) {
    std::ofstream log(folder / (name + ".csv"));
    log << header << "\n";
    for (int step = 1; step <= 60; ++step)
      log << step * per_step << "," << 11.0 - 0.05 * step + 0.01 * (step % 7) << "\n";
    log.close();
    REQUIRE(harness(folder / "log", {"runs", "import", (folder / (name + ".csv")).string(), "--db",
                                     (folder / (name + ".db")).string()})
                .code == 0);
  };
  const auto parity = [&](const std::string& a, const std::string& b) {
    return Json::parse(
        harness(folder / "log", {"report", "parity", (folder / (a + ".db")).string(),
                                 (folder / (b + ".db")).string(), "--kind", "outcome", "--json"})
            .out);
  };
  import("steps", "step,loss", 1);
  import("tokens", "tokens,loss", 64);
  import("also", "tokens,loss", 64);
  const auto mixed = parity("steps", "tokens");
  CHECK(mixed["verdict"] == "INVALID_DATA");
  CHECK(mixed["damage"][0].get<std::string>().starts_with(
      "steps tells steps and no tokens, tokens tells tokens and no steps: steps and tokens cannot "
      "be set against each other."));
  const auto alike = parity("tokens", "also");
  CHECK(alike["verdict"] != "INVALID_DATA");
  CHECK(alike["a"]["run"]["steps_known"] == false);
  CHECK(alike["a"]["run"]["last_step"] == nullptr);
  CHECK(alike["a"]["run"]["tokens"] == 60 * 64);
}

TEST_CASE("logs of one training are one, whatever their losses are means over", "[cli]") {
  const TemporaryDirectory folder;
  std::ofstream(folder / "config.json") << R"({"model": {"max_sequence_length": 64}})";
  /// Every `width`-th step of one curve, its losses times `factor`.
  const auto import = [&](const std::string& name, int width, double factor, const Words& means) {
    std::ofstream log(folder / (name + ".csv"));
    log << std::setprecision(17) << "step,loss\n";
    double sum = 0;
    for (int step = 1; step <= 240; ++step) {
      sum += 11.0 - 0.02 * step + 0.3 * (step % 7);
      if (step % width != 0) continue;
      log << step << "," << sum / width * factor << "\n";
      sum = 0;
    }
    log.close();
    std::string database = (folder / (name + ".db")).string();
    Words words = {"runs",
                   "import",
                   (folder / (name + ".csv")).string(),
                   "--json",
                   "--db",
                   database,
                   "--tokens-per-step",
                   "64",
                   "--config",
                   (folder / "config.json").string()};
    words.insert(words.end(), means.begin(), means.end());
    const auto imported = harness(folder / "log", words);
    REQUIRE(imported.code == 0);
    CHECK(Json::parse(imported.out).at("loss_span") ==
          (means.size() > 2 ? Json(means[3]) : Json()));
    return database;
  };
  const auto tokens = import("tokens", 1, 63.0 / 64, {"--loss-mean", "tokens"});
  const auto labels = import("labels", 4, 1, {"--loss-mean", "labels", "--loss-span", "interval"});
  const auto untold = import("untold", 4, 1, {});
  const auto difference = [&](const std::string& a, const std::string& b) {
    const auto report = Json::parse(
        harness(folder / "log", {"report", "parity", a, b, "--kind", "trajectory", "--json"}).out);
    return std::abs(report.at("trajectory").at("last_stretch").at("mean").get<double>());
  };
  CHECK(difference(tokens, labels) < 1e-9);
  CHECK(difference(tokens, untold) > 0.01);
}

TEST_CASE("runs import --instances makes an evaluation of another evaluator's instances", "[cli]") {
  const TemporaryDirectory folder;
  const std::string database = (folder / "other.db").string();
  const std::string samples = (folder / "samples_copa_2026-01-31T23-59-59.1.jsonl").string();
  std::ofstream(samples)
      << R"({"doc_id": 0, "target": "1", "arguments": [["Q", " a"], ["Q", " b"]],)"
      << R"( "resps": [[[-2.5, false]], [[-1.5, true]]], "acc": 1.0})";
  const auto runs = [&](const Words& words) {
    Words all = {"runs", "import", "--db", database};
    all.insert(all.end(), words.begin(), words.end());
    return harness(folder / "log", all);
  };
  CHECK(runs({}).code == 2);
  CHECK(runs({samples, "--instances", samples}).code == 2);
  CHECK(runs({"--instances", samples, "--metric", "f1"}).code == 2);
  CHECK(runs({"--instances", samples, "--weights-digest", "abc"}).code == 2);
  CHECK(runs({"--instances", samples, "--run", "x"}).code == 2);
  CHECK(runs({"--instances", samples, samples}).code == 2);
  CHECK_FALSE(fs::exists(database));
  const auto ended = runs({"--instances", samples, "--name", "theirs", "--json"});
  REQUIRE(ended.code == 0);
  CHECK(Json::parse(ended.out).at("instances") == Json{{"copa", 1}});
  const auto rescored = harness(folder / "log", {"eval", "--rescore", database});
  CHECK(rescored.code == 0);
  CHECK(rescored.out.find("copa") != std::string::npos);
  CHECK(harness(folder / "log", {"eval", "diff", database, database}).code == 0);
}

}  // namespace olmo::test
