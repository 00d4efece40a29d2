// Each verdict of `report parity` from real trainings of the tiny config through the binary.
#include <algorithm>
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include "cli/training.h"
#include "core/files/input_file.h"
#include "store/unsealed.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

/// A hundred steps into a database of its own; repeats with other seeds can follow into it.
struct Pair : Scene {
  std::string database(const std::string& name) const { return (*this / (name + ".db")).string(); }

  void trained(const std::string& name, const std::string& side, Words more = {}) const {
    for (const char* word : {"max_duration=100", "save_interval=50", "hash_interval=50"})
      more.insert(more.begin(), word);
    more.insert(more.end(), {"--db", database(side)});
    const auto ended = train(name, more);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
  }
  [[nodiscard]] Ended parity(const std::string& a, const std::string& b, Words more = {}) const {
    more.insert(more.begin(), {"report", "parity", a, b});
    return harness(*this / "log", more);
  }
  /// The report of two databases as JSON; its exit code is checked against the JSON's.
  [[nodiscard]] nlohmann::json report(const std::string& a, const std::string& b,
                                      Words more = {}) const {
    more.push_back("--json");
    const auto ended = parity(a, b, more);
    INFO(ended.err);
    auto json = nlohmann::json::parse(ended.out);
    CHECK(ended.code == json["exit_code"]);
    return json;
  }
};

/// Sums of gradients in another order, which is all that tells such a run from the plain one of its
/// seed: the difference is rounding, the same on every machine.
const Words kRounding = {"seed=1", "device_train_microbatch_size=2"};

void alter(const fs::path& database, const char* sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(database.c_str(), &db) == SQLITE_OK);
  CHECK(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

}  // namespace

TEST_CASE(
    "the same config twice is IDENTICAL, with what was compared, and its page is reproducible",
    "[cli]") {
  const Pair pair;
  pair.trained("a", "a");
  pair.trained("b", "b", {"threads=2"});
  const auto page = pair / "page.html";
  const auto report = pair.report(pair.database("a"), pair.database("b"), {"--out", page.string()});
  CHECK(report["verdict"] == "IDENTICAL");
  CHECK(report["claim"] == "identity");
  CHECK(report["exit_code"] == 0);
  CHECK(report["identity"]["first_different"].is_null());
  CHECK(report["reason"].get<std::string>().find("Bit for bit the same: all 100 common steps") ==
        0);
  const std::string html = read_file(page);
  CHECK(html.find("IDENTICAL") != std::string::npos);
  const auto again = pair.report(pair.database("a"), pair.database("b"), {"--out", page.string()});
  CHECK(again == report);
  CHECK(read_file(page) == html);
}

TEST_CASE("one run a side that differs by rounding is EQUIVALENT, as a claim about two models",
          "[cli]") {
  const Pair pair;
  pair.trained("a", "a", {"seed=1"});
  pair.trained("b", "b", kRounding);
  const auto report = pair.report(pair.database("a"), pair.database("b"));
  CHECK(report["verdict"] == "EQUIVALENT");
  CHECK(report["claim"] == "models");
  CHECK(report["kind"] == "trajectory");
  const std::string reason = report["reason"];
  CHECK(reason.find("These two models are equivalent within the margin ±0.002 nats (default)") ==
        0);
  const auto swapped = pair.report(pair.database("b"), pair.database("a"));
  CHECK(swapped["verdict"] == report["verdict"]);
}

TEST_CASE("branches of both sides from the same checkpoints are a claim about the setups",
          "[cli]") {
  const Pair pair;
  pair.trained("base", "base", {"save_interval=20"});
  for (const char* step : {"20", "40", "60", "80"})
    for (const std::string side : {"a", "b"}) {
      const auto ended = pair.train(
          side + step, {"max_duration=100", "stop_after=20", "--branch-from",
                        (pair / "base" / ("step" + std::string(step))).string(), "--db",
                        pair.database(side), side == "a" ? "numerics=portable" : "numerics=fast"});
      INFO(ended.err);
      REQUIRE((ended.code == 75 || ended.code == 0));
    }
  const auto report = pair.report(pair.database("a"), pair.database("b"));
  CHECK(report.dump().find("paired t, 4 branches") != std::string::npos);
  CHECK(report["claim"] == "setups");
  CHECK(report["verdict"] == "EQUIVALENT");
  const auto& pairs = report["noise_floor"]["branches"];
  REQUIRE(pairs.size() == 4);
  CHECK((pairs[0]["from_step"] == 20 && pairs[0]["steps"] == 20));
}

TEST_CASE("a margin and a difference: negligible within it, DIFFERENT beyond, a named confound",
          "[cli]") {
  const Pair pair;
  pair.trained("a", "a");
  pair.trained("b", "b", {"optimizer.learning_rate=1e-2"});
  const auto different = pair.report(pair.database("a"), pair.database("b"));
  CHECK(different["verdict"] == "DIFFERENT");
  CHECK(different["claim"] == "models");
  CHECK(different.dump().find("optimizer.learning_rate") != std::string::npos);
  const auto within = pair.report(pair.database("a"), pair.database("b"), {"--margin", "loss=100"});
  CHECK(within["verdict"] == "DIFFERENT_NEGLIGIBLE");
  CHECK(within["reason"].get<std::string>().find("±100 nats (command line)") != std::string::npos);
  const auto allowed = pair.report(pair.database("a"), pair.database("b"),
                                   {"--margin", "loss=100", "--allow-negligible"});
  CHECK(allowed["exit_code"] == 0);
}

TEST_CASE("two logs are CONSISTENT while nobody states what they do not tell, then EQUIVALENT",
          "[cli]") {
  const Pair pair;
  pair.trained("a", "a", {"seed=1"});
  pair.trained("b", "b", kRounding);
  for (const char* side : {"a", "b"}) {
    const auto log = (pair / (std::string(side) + ".csv")).string();
    REQUIRE(harness(pair / "log", {"runs", "export", pair.database(side), "--table", "steps",
                                   "--format", "csv", "--out", log})
                .code == 0);
    REQUIRE(harness(pair / "log",
                    {"runs", "import", log, "--db", pair.database(std::string("log-") + side)})
                .code == 0);
  }
  const auto a = pair.database("log-a"), b = pair.database("log-b");
  // What is suggested is the same report, so that it runs as it is printed.
  CHECK(pair.parity(a, b, {"--kind", "trajectory"})
            .err.find(" --kind trajectory --out parity.html") != std::string::npos);
  const auto untold = pair.report(a, b, {"--kind", "trajectory"});
  CHECK(untold["verdict"] == "CONSISTENT");
  CHECK(untold["reason"].get<std::string>().find("is not known") != std::string::npos);
  Words stated = {"--kind", "trajectory"};
  for (const auto& key : untold["gate"]["unknown"])
    stated.insert(stated.end(), {"--assume", key.get<std::string>() + "=equal"});
  const auto told = pair.report(a, b, stated);
  CHECK(told["verdict"] == "EQUIVALENT");
  CHECK(told["claim"] == "models");
  CHECK(told["caveats"].dump().find("Assumed, not recorded") != std::string::npos);
}

TEST_CASE("logs that number the same steps differently are NOT_COMPARABLE", "[cli]") {
  const Pair pair;
  const auto logged = [&](const std::string& name, int first) {
    std::string text = "step,loss\n";
    for (int i = 0; i < 200; ++i)
      text += std::to_string(first + i) + "," + std::to_string(2 + 0.01 * std::sin(i * i)) + "\n";
    const auto log = pair / (name + ".csv");
    std::ofstream(log) << text;
    REQUIRE(
        harness(pair / "log", {"runs", "import", log.string(), "--db", pair.database(name)}).code ==
        0);
    return pair.database(name);
  };
  const auto a = logged("a", 1);
  for (const int first : {0, 38}) {
    const auto b = logged("b" + std::to_string(first), first);
    const auto report = pair.report(a, b, {"--kind", "trajectory"});
    CHECK(report["verdict"] == "NOT_COMPARABLE");
    CHECK(report["reason"].get<std::string>().find("number the same steps differently") !=
          std::string::npos);
  }
}

TEST_CASE("scores that logs tell are named as not compared, with the side that lacks one",
          "[cli]") {
  const Pair pair;
  const auto logged = [&](const std::string& name, const std::string& scores, double score) {
    std::string text = "step,loss," + scores + "\n";
    const auto columns = std::count(scores.begin(), scores.end(), ',') + 1;
    for (int i = 1; i <= 20; ++i) {
      text += std::to_string(i) + "," + std::to_string(2 + 0.01 * i);
      for (std::ptrdiff_t j = 0; j < columns; ++j) text += "," + std::to_string(score);
      text += "\n";
    }
    const auto log = pair / (name + ".csv");
    std::ofstream(log) << text;
    REQUIRE(
        harness(pair / "log", {"runs", "import", log.string(), "--db", pair.database(name)}).code ==
        0);
    return pair.database(name);
  };
  const auto report =
      pair.report(logged("a", "eval/downstream/arc_easy_acc,eval/downstream/piqa_acc", 0.3),
                  logged("b", "eval/downstream/arc_easy_acc", 0.6), {"--kind", "trajectory"});
  const std::string caveats = report["caveats"].dump();
  CHECK(caveats.find("only A tells eval/downstream/piqa_acc") != std::string::npos);
  CHECK(caveats.find("both tell eval/downstream/arc_easy_acc") != std::string::npos);
}

TEST_CASE("logs without a common step are NOT_COMPARABLE, and their steps are told", "[cli]") {
  const Pair pair;
  const auto logged = [&](const std::string& name, int first) {
    std::string text = "step,loss\n";
    for (int i = 0; i < 20; ++i)
      text += std::to_string(first + 2 * i) + "," + std::to_string(2 + 0.01 * i) + "\n";
    const auto log = pair / (name + ".csv");
    std::ofstream(log) << text;
    REQUIRE(
        harness(pair / "log", {"runs", "import", log.string(), "--db", pair.database(name)}).code ==
        0);
    return pair.database(name);
  };
  for (const char* kind : {"trajectory", "outcome"}) {
    const auto report = pair.report(logged("odd", 1), logged("even", 2), {"--kind", kind});
    CHECK(report["verdict"] == "NOT_COMPARABLE");
    CHECK(report["reason"].get<std::string>().find("odd has losses at steps 1, 3, 5 … 39; even ") !=
          std::string::npos);
  }
}

TEST_CASE("a seed that is not the config's is INVALID_DATA, for report and audit", "[cli]") {
  const Pair pair;
  pair.trained("a", "a");
  pair.trained("b", "b");
  alter(pair.database("b"), "UPDATE runs SET seed = 99");
  const auto report = pair.report(pair.database("a"), pair.database("b"));
  CHECK(report["verdict"] == "INVALID_DATA");
  CHECK(report["reason"].get<std::string>().find("runs.seed is 99, and its config says") !=
        std::string::npos);
  const auto audited = harness(pair / "log", {"audit", pair.database("b"), "--steps", "1..2"});
  CHECK(audited.code == 4);
  CHECK(audited.err.find("runs.seed is 99") != std::string::npos);
}

TEST_CASE("a declared margin is used, named with its author, and cannot be altered", "[cli]") {
  const Pair pair;
  pair.trained("a", "a", {"seed=1"});
  const auto declared = harness(pair / "log", {"report", "declare", pair.database("a"), "--margin",
                                               "loss=0.5", "--by", "ada"});
  REQUIRE(declared.code == 0);
  pair.trained("b", "b", kRounding);
  for (const bool swapped : {false, true}) {
    const auto report = pair.report(pair.database(swapped ? "b" : "a"),
                                    pair.database(swapped ? "a" : "b"), {"--margin", "loss=9"});
    CHECK(report["verdict"] == "EQUIVALENT");
    CHECK(report["margins"]["loss"]["value"] == 0.5);
    CHECK(report["margins"]["loss"]["who"] == "ada");
    CHECK(report["reason"].get<std::string>().find("declared by ada at 20") != std::string::npos);
    CHECK(report["caveats"].dump().find("a declared margin stays") != std::string::npos);
  }
  alter(pair.database("a"), "UPDATE declarations SET margins = 'loss=5'");
  CHECK(pair.report(pair.database("a"), pair.database("b"))["verdict"] == "INVALID_DATA");
}

TEST_CASE("another seed is an outcome, which one run a side cannot decide", "[cli]") {
  const Pair pair;
  pair.trained("a", "a", {"seed=1"});
  pair.trained("b", "b", {"seed=2"});
  const auto report = pair.report(pair.database("a"), pair.database("b"));
  CHECK(report["kind"] == "outcome");
  CHECK(report["verdict"] == "INCONCLUSIVE");
  CHECK(report["reason"].get<std::string>().find("one run a side") != std::string::npos);

  const auto noise = pair / "noise.json";
  const auto parameters =
      Record(pair.database("a")).value("SELECT CAST(n_parameters AS TEXT) FROM runs");
  std::ofstream(noise)
      << R"({"source": "Example 2025", "deviations": [{"metric": "loss", "parameters": )"
      << parameters << R"(, "tokens": 25600, "deviation": 100}]})";
  for (const bool swapped : {false, true}) {
    const auto published =
        pair.report(pair.database(swapped ? "b" : "a"), pair.database(swapped ? "a" : "b"),
                    {"--noise", noise.string(), "--margin", "loss=500"});
    CHECK(published["verdict"] == "EQUIVALENT");
    CHECK(published["claim"] == "setups");
    CHECK(published["reason"].get<std::string>().find("with noise from Example 2025") !=
          std::string::npos);
  }
}

TEST_CASE("another tokenizer is NOT_COMPARABLE", "[cli]") {
  const Pair pair;
  pair.trained("a", "a", {"model.embedding_size=1024"});
  pair.trained("b", "b",
               {"model.embedding_size=1024",
                "tokenizer.identifier=" OLMO_SOURCE_DIR "/tests/data/data/tokenizer_small.json",
                "allow_eos_mismatch=true"});
  const auto report = pair.report(pair.database("a"), pair.database("b"));
  CHECK(report["verdict"] == "NOT_COMPARABLE");
}

TEST_CASE("a damaged database is INVALID_DATA: altered by a bit, cut short, or no database",
          "[cli]") {
  const Pair pair;
  pair.trained("a", "a");
  fs::copy_file(pair.database("a"), pair.database("altered"));
  alter(pair.database("altered"), "UPDATE steps SET ce_loss = ce_loss + 1e-12 WHERE step = 60");
  const auto altered = pair.report(pair.database("a"), pair.database("altered"));
  CHECK(altered["verdict"] == "INVALID_DATA");
  CHECK(altered["reason"].get<std::string>().find("step 60") != std::string::npos);
  const auto page = harness(pair / "log", {"report", "run", pair.database("altered")});
  CHECK(page.code == 4);
  CHECK(page.out.find("- damaged: step 60") != std::string::npos);

  fs::copy_file(pair.database("a"), pair.database("cut"));
  fs::resize_file(pair.database("cut"), fs::file_size(pair.database("cut")) / 2);
  CHECK(pair.report(pair.database("a"), pair.database("cut"))["verdict"] == "INVALID_DATA");

  std::ofstream(pair.database("text")) << "not a database";
  const auto text = pair.report(pair.database("a"), pair.database("text"));
  CHECK(text["verdict"] == "INVALID_DATA");
  CHECK(text["reason"].get<std::string>().find("is a text and no run database") !=
        std::string::npos);

  const auto missing = pair.parity(pair.database("a"), pair.database("missing"));
  CHECK(missing.code == 2);
  CHECK(missing.err.find("no such run database") != std::string::npos);
}

TEST_CASE("an edited norm of the weights contradicts the other record", "[cli]") {
  const Pair pair;
  pair.trained("a", "a");
  pair.trained("b", "b");
  const std::string last = Record(pair.database("b")).value("SELECT max(step) || '' FROM steps");
  for (const std::string& step : {std::string("3"), last}) {  // of the last, the state is the proof
    fs::copy_file(pair.database("b"), pair.database("altered"),
                  fs::copy_options::overwrite_existing);
    const std::string sql = "UPDATE steps SET param_norm = 1 WHERE step = " + step + "; " + kUnseal;
    alter(pair.database("altered"), sql.c_str());
    const auto report = pair.report(pair.database("a"), pair.database("altered"));
    CHECK(report["verdict"] == "INVALID_DATA");
    CHECK(report["reason"].get<std::string>().find("step " + step + " differs in param_norm") !=
          std::string::npos);
  }
}

TEST_CASE("a run of no step has a page, and what is suggested can be done with it", "[cli]") {
  const Scene scene;
  const auto ended = scene.train("none", {"max_duration=0"});
  REQUIRE(ended.code == 0);
  CHECK(ended.err.find(" report run ") != std::string::npos);
  CHECK(ended.err.find(" audit ") == std::string::npos);  // there is nothing to train again
  CHECK(ended.err.find(" eval ") == std::string::npos);   // its tokenizer is not here
  const auto page = harness(scene / "log", {"report", "run", (scene / "none").string(), "--out",
                                            (scene / "page.html").string()});
  INFO(page.err);
  CHECK(page.code == 0);
}

TEST_CASE("a run that went back and ended earlier is sound, audited and compared", "[cli]") {
  const Scene scene;
  REQUIRE(scene.train("whole", {"hash_interval=5"}).code == 0);
  REQUIRE(scene.train("back", {"hash_interval=5", "stop_after=15"}).code == 75);
  REQUIRE(scene
              .train("back", {"hash_interval=5", "stop_after=2", "--resume",
                              (scene / "back" / "step10").string()})
              .code == 75);
  const auto parity = harness(scene / "log", {"report", "parity", (scene / "whole").string(),
                                              (scene / "back").string(), "--json"});
  CHECK(nlohmann::json::parse(parity.out)["verdict"] == "IDENTICAL");
  CHECK(harness(scene / "log", {"audit", (scene / "back").string()}).code == 0);
}

}  // namespace olmo::test
