#include <bit>
#include <fstream>

#include "text_log.h"
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "import/steps.h"
#include "store/database/schema.h"
#include "store/runs/run_db.h"
#include "store/runs/run_overview.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::import;
using namespace olmo::store;
using namespace olmo::test;

namespace {

ImportedRun an_import(const std::string& name) {
  return {.name = name, .config = "{}", .seed = 0, .tags = {}, .command_line = ""};
}

template <class Read>
std::string sentence(ErrorKind kind, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a CSV that W&B exported is read by its metric's name, whatever the run's", "[import]") {
  const Log log(
      "\xEF\xBB\xBF\"Step\",\"my - run - train/CrossEntropyLoss\",\"throughput/total_tokens\","
      "\"optim/total_grad_norm\",\"optim/learning_rate_group0\",System/gpu,note\r\n"
      "1,11.2500000000000017763568394002504646778106689453125,4096,\"1.5\",1e-4,50,\"a, \"\"b\"\"\n"
      "c\"\r\n"
      "\r\n"
      "2,0.1,8192,NaN,2.5e-4,,\r\n");
  const auto read = log.read();
  CHECK(read.format == LogFormat::kCsv);
  CHECK(read.columns.at("loss") == "my - run - train/CrossEntropyLoss");
  REQUIRE(read.steps.size() == 2);
  CHECK(std::bit_cast<std::uint64_t>(*read.steps[0].loss) == 0x4026800000000001U);
  CHECK(read.steps[0].tokens == 4096);
  CHECK(read.steps[0].grad_norm == 1.5);
  CHECK(read.steps[0].lr == 1e-4);
  CHECK(std::bit_cast<std::uint64_t>(*read.steps[1].loss) == std::bit_cast<std::uint64_t>(0.1));
  CHECK_FALSE(read.steps[1].grad_norm);
  CHECK(read.sha256 == sha256_file(log.path).hex());
}

TEST_CASE("JSON lines may hold NaN, nested values and rows of evaluations", "[import]") {
  const Log log(
      R"({"_step": 0, "_runtime": 5.5, "train/CrossEntropyLoss": 10.000000000000002, "x": {"y": [1]}})"
      "\n"
      R"({"_step": 1, "eval/NaN loss": NaN, "note": "a \" NaN"})"
      "\n"
      R"({"_step": 2.0, "train/CrossEntropyLoss": NaN, "optim/total_grad_norm": -Infinity})"
      "\n\n"
      R"({"_step": 3, "train/CrossEntropyLoss": "Infinity", "throughput/total_tokens": 12})");
  const auto read = log.read();
  CHECK(read.format == LogFormat::kJsonl);
  CHECK(steps(read) == std::vector<std::int64_t>{0, 2, 3});
  CHECK(read.steps[0].loss == 10.000000000000002);
  CHECK_FALSE(read.steps[1].loss);
  CHECK_FALSE(read.steps[1].grad_norm);
  CHECK_FALSE(read.steps[2].loss);
  CHECK(read.steps[2].tokens == 12);
  CHECK(read.skipped == 1);
  CHECK_FALSE(read.columns.contains("seconds"));  // _runtime is not a step's
}

TEST_CASE("columns without a header are step and loss", "[import]") {
  const Log log("# a comment\n1 8.048324584960938\n2\t7.751150131225586  0.5\n");
  const auto read = log.read({.columns = {{"lr", "column3"}}, .tokens_per_step = 64});
  CHECK(read.format == LogFormat::kColumns);
  CHECK(losses(read) == std::vector<double>{8.048324584960938, 7.751150131225586});
  CHECK(read.steps[1].tokens == 128);
  CHECK_FALSE(read.steps[0].lr);
  CHECK(read.steps[1].lr == 0.5);
}

TEST_CASE("Hugging Face's trainer_state.json is read as the log that it holds", "[import]") {
  const std::string line = R"({"best_metric": null, "log_history": [
    {"epoch": 0.1, "grad_norm": NaN, "learning_rate": 0.001, "loss": 5.5, "step": 10},
    {"epoch": 0.2, "loss": 5.25, "step": 20}, {"eval_loss": 5.5, "step": 20}], "global_step": 20})";
  std::string pretty = line, compact = line;
  pretty.insert(1, "\n");
  std::erase(compact, '\n');
  for (const auto& text : {pretty, compact}) {
    const Log log(text, "trainer_state.json");
    const auto read = log.read();
    CHECK(read.format == LogFormat::kJsonl);
    CHECK(losses(read) == std::vector<double>{5.5, 5.25});
    CHECK(steps(read) == std::vector<std::int64_t>{10, 20});
    CHECK(read.metric_names == std::vector<std::string>{"eval_loss"});
    CHECK_THAT(
        sentence(ErrorKind::kInput, [&] { (void)read_step_log(log.path.parent_path(), {}); }),
        Catch::EndsWith("is a folder; the log in it is " + log.path.string()));
  }
  CHECK_THAT(sentence(ErrorKind::kInput, [] { (void)Log(R"({"log_history": [1]})").read(); }),
             Catch::EndsWith("entry 1 of `log_history` must be an object"));
}

TEST_CASE("a folder is refused with the name of the log in it", "[import]") {
  const TemporaryDirectory folder;
  const auto said = [&] {
    return sentence(ErrorKind::kInput, [&] { (void)read_step_log(folder.path(), {}); });
  };
  const auto put = [&](const char* name) { std::ofstream(folder / name) << "x"; };
  put("debug.log");
  CHECK_THAT(said(), !Catch::Contains("the log in it"));
  put("run-x.wandb");
  CHECK_THAT(said(), Catch::EndsWith("the log in it is " + (folder / "run-x.wandb").string()));
  put("events.out.tfevents.1.node");
  CHECK_THAT(said(), Catch::EndsWith("events.out.tfevents.1.node, and there are more of them"));
}

TEST_CASE("files beside Hugging Face's log are refused with the log's name", "[import]") {
  for (const auto* name : {"config.json", "model.safetensors", "optimizer.pt"})
    CHECK_THAT(
        sentence(ErrorKind::kInput, [&] { (void)Log("{\n}", name).read(); }),
        Catch::Contains(std::string(name) + ": is no log: that of a Hugging Face checkpoint is its "
                                            "trainer_state.json"));
}

TEST_CASE("a restart within a log supersedes what was logged from its step on", "[import]") {
  const Log log("1 5\n2 4\n3 3\n4 2\n2 4.5\n3 3.5\n");
  const auto read = log.read();
  CHECK(losses(read) == std::vector<double>{5, 4.5, 3.5});
  REQUIRE(read.restarts.size() == 1);
  CHECK(read.restarts[0].position == 2);
  CHECK(read.restarts[0].message ==
        "the log goes from step 4 back to step 2 (line 5): 3 rows are superseded");
}

TEST_CASE("a log with the last step first, or with rows twice, is no restart", "[import]") {
  const auto turned = Log("3 3\n2 4\n1 5\n").read();
  CHECK(losses(turned) == std::vector<double>{5, 4, 3});
  CHECK(turned.reversed);
  CHECK(turned.restarts.empty());
  const auto twice = Log("1 5\n1 5.5\n2 4\n").read();
  CHECK(losses(twice) == std::vector<double>{5.5, 4});
  CHECK(twice.repeated == 1);
  CHECK(twice.restarts.empty());
}

TEST_CASE("a bad line is named, whatever the format", "[import]") {
  const auto reads = [](const std::string& text, const std::string& name = "x.log") {
    const Log log(text, name);
    const auto what = sentence(ErrorKind::kInput, [&] { (void)log.read(); });
    const auto folder = log.path.parent_path().string() + "/";
    return what.starts_with(folder) ? what.substr(folder.size()) : what;
  };
  CHECK(reads("step,loss\n1,2\n2,abc\n") ==
        "x.log:3: column 'loss' must be a number with a decimal point, got 'abc'");
  CHECK(reads("step,loss\n1,2\n2\n") == "x.log:3: has 1 fields, the header has 2");
  CHECK(reads("step,loss\n1,\"2\n2,3\n") == "x.log:2: has a quote that is never closed");
  CHECK(reads("step,loss\n,2\n") == "x.log:2: has a loss, but no step");
  CHECK(reads("1 2\n-1 2\n") ==
        "x.log:2: column 'step' must be a whole number from 0 to 2^53, got '-1'");
  CHECK(reads("1 2\n1.5 2\n") ==
        "x.log:2: column 'step' must be a whole number from 0 to 2^53, got '1.5'");
  CHECK(reads("step,loss,loss\n1,2,3\n") == "x.log:1: has the column 'loss' twice");
  CHECK(reads("{\"step\": 1, \"loss\": 2, \"loss\": 3}\n") ==
        "x.log:1: has the key \"loss\" twice in one object");
  CHECK(reads("{\"step\": 1, \"loss\": true, \"done\": false}\n") ==
        "x.log:1: column 'loss' must be a number with a decimal point, got 'true'");
  CHECK(reads("step,loss,done\n1,true,false\n") ==
        "x.log:2: column 'loss' must be a number with a decimal point, got 'true'");
  CHECK(reads("1 2\n3\n") == "x.log:2: needs a step and a loss, has one");
  CHECK_THAT(reads("{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"lo"),
             Catch::StartsWith("x.log:2: is not valid JSON"));
  CHECK(reads("{\"step\": 1, \"loss\": 2}\n[1]") == "x.log:2: is not a JSON object");
  CHECK(reads("{\"a\":" + std::string(100000, '[') + "\n") == "x.log:1: is nested too deep");
  CHECK_THAT(reads("{\"step\": 1, \"loss\": 1e999}\n"), Catch::StartsWith("x.log:1: is not valid"));
  CHECK_THAT(reads(""), Catch::Contains("none of the known logs"));
  CHECK_THAT(reads("hello\n"), Catch::Contains("none of the known logs"));
  for (const auto* line : {"iter 10: loss 3.1462, time 40.24ms", "epoch 1 loss=2.5, lr=1e-4",
                           "Epoch 1 | step 2 | loss train: 10.912, val: n/a"})
    CHECK_THAT(reads(std::string(line) + "\n" + line + "\n"),
               Catch::Contains("none of the known logs"));
  const std::string hugging_face = "{'loss': 2.5, 'learning_rate': 4.9e-05, 'epoch': 0.05}\n";
  for (const std::string before : {"", "Loading, please wait\n", "  5%|#  | 10/200 "})
    CHECK_THAT(reads(before + hugging_face), Catch::Contains("trainer_state.json"));
  CHECK_THAT(reads("step,loss\n", "x.csv"), Catch::Contains("holds no row"));
  CHECK_THAT(reads("step,loss\n1,\n"), Catch::Contains("no row has a loss"));
}

TEST_CASE("a number that may be read in two ways, or in none, is refused", "[import]") {
  for (const char* number : {"2,5", "2,345", "2.345,5", "12,34,567", "1e400", "0x1p3", "5abc",
                             "+-5", "１", "1_000", "--5", "1 000"}) {
    INFO(number);
    CHECK_FALSE(parse_log_number(number));
  }
  CHECK(parse_log_number(" 5 ") == 5);
  CHECK(parse_log_number("+2.5") == 2.5);
  CHECK(parse_log_number("-0") == 0);
  CHECK(parse_log_number("1,234,567") == 1234567);
  CHECK(parse_log_number("-1,234.5") == -1234.5);
  CHECK(parse_log_count("2,345") == 2345);
  CHECK(parse_log_count("1e6") == 1e6);
  CHECK_FALSE(parse_log_count("2,34"));
  CHECK_FALSE(parse_log_count("9007199254740993"));
  CHECK_FALSE(parse_log_count("99999999999999999999"));
  CHECK(parse_log_count("9007199254740992") == 9007199254740992.0);
}

TEST_CASE("a column that is not there is told with those that are", "[import]") {
  const Log log("it,train/CrossEntropyLos,b - loss,c - loss\n1,2,3,4\n");
  const auto fails = [&](const ColumnMap& columns) {
    return sentence(ErrorKind::kUsage, [&] { (void)log.read({.format = {}, .columns = columns}); });
  };
  CHECK_THAT(fails({{"loss", "train/CrossEntropyLoss"}}),
             Catch::EndsWith("has no column 'train/CrossEntropyLoss' for the loss (did you mean "
                             "'train/CrossEntropyLos'?), it has 'it', 'train/CrossEntropyLos', "
                             "'b - loss', 'c - loss'"));
  CHECK_THAT(fails({{"loss", "train/CrossEntropyLos"}}),
             Catch::EndsWith("no column has a name known for the step, it has 'it', "
                             "'train/CrossEntropyLos', 'b - loss', 'c - loss': name one with "
                             "--map step=COLUMN"));
  CHECK_THAT(fails({{"step", "it"}}),
             Catch::EndsWith("both 'b - loss' and 'c - loss' may be the loss: choose with --map "
                             "loss=COLUMN"));
  const auto read = log.read({.format = {}, .columns = {{"step", "it"}, {"loss", "c - loss"}}});
  CHECK(losses(read) == std::vector<double>{4});
  CHECK(sentence(ErrorKind::kUsage, [] {
          parse_column_map({"los=a"});
        }).starts_with("--map: there is no 'los' (did you mean 'loss'?), the targets are 'step'"));
  CHECK(sentence(ErrorKind::kUsage, [] { parse_column_map({"loss"}); }) ==
        "--map must be TARGET=COLUMN, got 'loss'");
}

TEST_CASE("an imported log is a finished run with its steps, events and digest", "[import]") {
  const Log log("1 5\n2 4\n1 0.1\n2 nan\n");
  const auto read = log.read();
  RecordDatabase records(log.folder / "other.db", OpenMode::kCreate);
  CHECK_FALSE(store::find_imported_run(records, read.sha256));
  const auto id = write_step_logs(records, {read},
                                  {.name = "theirs",
                                   .config = R"({"seed":7})",
                                   .seed = 7,
                                   .tags = {"h100", "h100"},
                                   .command_line = "import",
                                   .devices = 8});
  CHECK(store::find_imported_run(records, read.sha256) == id);
  std::vector<std::vector<SqlValue>> rows;
  const auto query = [&](const std::string& sql) {
    rows.clear();
    records.query(sql, {}, [&](const auto&, const auto& row) { rows.push_back(row); });
  };
  query("SELECT step, tokens, ce_loss FROM imported_steps ORDER BY position");
  CHECK((rows == std::vector<std::vector<SqlValue>>{{std::int64_t{1}, {}, 0.1},
                                                    {std::int64_t{2}, {}, {}}}));
  query("SELECT name, status, step, max_steps, tags, attempts FROM run_overview");
  CHECK((rows == std::vector<std::vector<SqlValue>>{
                     {"theirs", "finished", std::int64_t{2}, {}, "h100", std::int64_t{1}}}));
  const auto overview = store::read_overview(records, id);
  CHECK_FALSE(overview.n_parameters);
  CHECK_FALSE(overview.max_steps);
  query("SELECT kind, step, attempt FROM events");
  CHECK(
      (rows == std::vector<std::vector<SqlValue>>{{"restart", std::int64_t{1}, std::int64_t{1}}}));
  query(
      "SELECT environment ->> 'imported', environment ->> 'format', environment ->> 'device_count' "
      "FROM attempts");
  CHECK(
      (rows == std::vector<std::vector<SqlValue>>{{std::int64_t{1}, "columns", std::int64_t{8}}}));
}

TEST_CASE("a database of version 2 gets the tables of imports and an overview with them",
          "[import]") {
  const Log log("1 5\n");
  const auto path = log.folder / "run.db";
  {
    Database db(path, OpenMode::kCreate);
    for (int i = 0; i < 2; ++i) db.execute(kMigrations[i]);
    db.execute("PRAGMA application_id = " + std::to_string(kApplicationId) +
               "; PRAGMA user_version = 2");
    db.execute(
        "INSERT INTO runs VALUES ('20260101T000000-00000000', 'old', '2026-01-01', 'finished', "
        "'{}', 'd', 1, 10, 100)");
  }
  RunDb db = RunDb::open(path, OpenMode::kReadWrite);
  (void)write_step_logs(db.records(), {log.read()}, an_import("new"));
  std::string overview;
  db.query("SELECT name, step FROM run_overview ORDER BY created_utc", {},
           [&](const auto&, const auto& row) {
             const auto* step = std::get_if<std::int64_t>(&row[1]);
             overview += std::get<std::string>(row[0]) + (step ? std::to_string(*step) : "-") + " ";
           });
  CHECK(overview == "old- new1 ");
}

TEST_CASE("damaged logs give a sentence or rows, never a crash", "[import]") {
  const std::vector<std::string> sound = {
      "step,\"loss\",lr\n1,\"2.5\",1e-3\n2,2.25,1e-3\n",
      "{\"_step\": 1, \"loss\": 2.5, \"x\": \"NaN\\n\"}\n{\"_step\": 2, \"loss\": NaN}\n",
      "[step=1/2,epoch=0]\n    train/CrossEntropyLoss=2.5\n    x=1,000\n",
      "INFO - \x1b[31mstep:  1  \x1b[32mloss: 12.2  tps: 1,234\x1b[39m\n",
  };
  for (const auto& text : sound) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      for (const char c : {'\0', '"', '\n', '\x1b', '\xff', '9'}) {
        std::string damaged = text;
        damaged[at] = c;
        const Log log(damaged);
        try {
          const auto read = log.read();
          CHECK_FALSE(read.steps.empty());
        } catch (const Error& error) {
          CHECK((error.kind() == ErrorKind::kInput || error.kind() == ErrorKind::kUsage));
        }
      }
    }
  }
}
