#include "eval/load_task.h"

#include "task_data.h"
#include <nlohmann/json.hpp>

#include "core/files/input_file.h"
#include "support/catch.h"

using namespace olmo::eval;
using namespace olmo::test;
using Catch::Matchers::Contains;
using olmo::ErrorKind;
using olmo::Json;
namespace fs = std::filesystem;

namespace {

Json as_json(const Example& example) {
  Json options = Json::array();
  for (const auto& option : example.options) {
    options.push_back({option.context, option.continuation,
                       option.unconditional ? Json(*option.unconditional) : Json()});
  }
  return {{"label", example.label}, {"options", options}};
}

/// A catalog with one more task.
TaskCatalog with_task(const TemporaryDirectory& folder, const std::string& text) {
  write_text(folder / "evals" / "tasks" / "mine.json", text);
  return load_catalog(folder / "evals");
}

std::string lines_task(const std::string& more) {
  return R"({"source": "./rows.jsonl", "options": ["{a}", "{b}"], "context": "{q}", "continuation": " {option}",)" +
         more + R"("conventions": {"olmo": {}}})";
}

}  // namespace

TEST_CASE("requests are those that OLMo's classes and lm-eval make of the same rows", "[eval]") {
  const auto catalog = load_catalog();
  std::ifstream golden(task_data() / "requests.golden.jsonl");
  std::string before;
  std::vector<Example> examples;
  std::size_t next = 0;
  for (std::string line; std::getline(golden, line);) {
    const Json expected = Json::parse(line);
    const auto name = expected.at("task").get<std::string>();
    const auto convention = expected.at("convention").get<std::string>();
    if (before != name + convention) {
      CHECK(next == examples.size());
      examples = load_task(resolve(catalog, name, convention)).examples;
      before = name + convention;
      next = 0;
    }
    INFO(name << ", " << convention << ", " << next);
    REQUIRE(next < examples.size());
    CHECK(examples[next].doc_id == static_cast<std::int64_t>(next));
    CHECK(as_json(examples[next]) ==
          Json({{"label", expected.at("label")}, {"options", expected.at("options")}}));
    ++next;
  }
  CHECK(next == examples.size());
  CHECK(next > 0);
}

TEST_CASE("request files give their instances with unconditional contexts", "[eval]") {
  const auto loaded = load_task(resolve(load_catalog(), "openbookqa_mc_5shot", "olmo"));
  REQUIRE(loaded.examples.size() == 2);
  const auto& second = loaded.examples[1];
  CHECK(second.doc_id == 1);
  CHECK(second.native_id == "1");
  CHECK(second.label == 1);
  REQUIRE(second.options.size() == 3);
  CHECK(second.options[2].context == "Question: 1\nAnswer:");
  CHECK(second.options[2].continuation == " é");
  CHECK(second.options[2].unconditional == "Answer:");
}

TEST_CASE("with _bpb the right answer is the only one", "[eval]") {
  const auto catalog = load_catalog();
  for (const char* name : {"arc_easy", "openbookqa_mc_5shot"}) {
    const auto whole = load_task(resolve(catalog, name, "olmo"));
    const auto answers = load_task(resolve(catalog, std::string(name) + "_bpb", "olmo"));
    REQUIRE(answers.examples.size() == whole.examples.size());
    for (std::size_t i = 0; i < whole.examples.size(); ++i) {
      const auto& right =
          whole.examples[i].options[static_cast<std::size_t>(whole.examples[i].label)];
      REQUIRE(answers.examples[i].options.size() == 1);
      CHECK(answers.examples[i].label == 0);
      CHECK(answers.examples[i].options[0].continuation == right.continuation);
    }
  }
}

TEST_CASE("a limit takes the first instances", "[eval]") {
  const auto catalog = load_catalog();
  for (const char* name : {"mmlu_anatomy_var", "openbookqa_mc_5shot", "winogrande"}) {
    const auto task = resolve(catalog, name, "olmo");
    const auto whole = load_task(task);
    for (std::int64_t limit : {0, 1, 100}) {
      const auto some = load_task(task, limit);
      REQUIRE(some.examples.size() ==
              std::min<std::size_t>(static_cast<std::size_t>(limit), whole.examples.size()));
      for (std::size_t i = 0; i < some.examples.size(); ++i) {
        CHECK(as_json(some.examples[i]) == as_json(whole.examples[i]));
      }
    }
  }
}

TEST_CASE("a task of one's own needs a JSON file and its rows", "[eval]") {
  const TemporaryDirectory folder;
  const auto catalog = with_task(folder, lines_task(R"("label": "{right}",)"));
  write_text(folder / "evals" / "tasks" / "rows.jsonl",
             "{\"q\": \"Wet?\", \"a\": \"ice\", \"b\": \"rain\", \"right\": 1}\n");
  const auto loaded = load_task(resolve(catalog, "mine", "olmo"));
  REQUIRE(loaded.examples.size() == 1);
  CHECK(as_json(loaded.examples[0]) ==
        Json({{"label", 1}, {"options", {{"Wet?", " ice", nullptr}, {"Wet?", " rain", nullptr}}}}));
}

TEST_CASE("the example of evals/README.md is a task", "[eval]") {
  const auto readme = olmo::read_file(fs::path(OLMO_SOURCE_DIR) / "evals" / "README.md");
  const auto begin = readme.find("```json\n") + 8;
  const TemporaryDirectory folder;
  const auto catalog = with_task(folder, readme.substr(begin, readme.find("```", begin) - begin));
  write_text(folder / "evals" / "tasks" / "my_questions.jsonl",
             R"({"id": "1", "question": "Which is wet?", "choices": {"text": ["stone", "water"],)"
             R"( "label": ["A", "B"]}, "answerKey": "B"})");
  for (const char* convention : {"olmo", "lm-eval"}) {
    const auto examples = load_task(resolve(catalog, "mine", convention)).examples;
    REQUIRE(examples.size() == 1);
    CHECK(examples[0].label == 1);
    CHECK(examples[0].native_id == "1");
    CHECK(examples[0].options.at(1).context == "Question: Which is wet?\nAnswer:");
    CHECK(examples[0].options.at(1).continuation == " water");
  }
}

TEST_CASE("rows that the task does not fit are named", "[eval]") {
  const TemporaryDirectory folder;
  const auto catalog =
      with_task(folder, lines_task(R"("label": {"value": "{right}", "in": ["x", "y"]},)"));
  const auto problem_of = [&](const std::string& row) {
    write_text(folder / "evals" / "tasks" / "rows.jsonl", row);
    return sentence_of(ErrorKind::kInput, [&] { load_task(resolve(catalog, "mine", "olmo")); });
  };
  CHECK(problem_of(R"({"q": "", "a": "", "b": "", "right": "y"})").empty());
  CHECK_THAT(problem_of(R"({"q": "", "a": "", "b": "", "right": "z"})"),
             Contains("rows.jsonl, row 0: the label `z` is none of those"));
  CHECK_THAT(problem_of(R"({"q": "", "a": "", "right": "x"})"),
             Contains("`options`") && Contains("field `b` is not there"));
  CHECK_THAT(problem_of("{}\n[1]\n"), Contains("rows.jsonl:2: is not a JSON object"));
  CHECK_THAT(problem_of("{\"q\": " + std::string(100000, '[')), Contains("is nested too deep"));
  CHECK_THAT(problem_of("{\"q\": \xff}"), Contains("is not valid JSON"));
}

TEST_CASE("labels that are not an option's place are named", "[eval]") {
  const TemporaryDirectory folder;
  const auto catalog = with_task(folder, lines_task(R"("label": "{right}",)"));
  const auto problem_of = [&](const std::string& right) {
    write_text(folder / "evals" / "tasks" / "rows.jsonl",
               R"({"q": "", "a": "", "b": "", "right": )" + right + "}");
    return sentence_of(ErrorKind::kInput, [&] { load_task(resolve(catalog, "mine", "olmo")); });
  };
  CHECK_THAT(problem_of("-1"), Contains("the label -1 is none of the 2 options"));
  CHECK_THAT(problem_of("2"), Contains("the label 2 is none of the 2 options"));
  CHECK_THAT(problem_of("\"b\""), Contains("the label `b` is not a number"));
}

using namespace olmo::eval;
using namespace olmo::test;
using Catch::Matchers::Contains;
using olmo::ErrorKind;

namespace {

std::string line(const std::string& doc_id, const std::string& idx, const std::string& label,
                 const std::string& continuation = " a") {
  return R"({"request_type": "loglikelihood", "doc": {}, "request": {"context": "c", "continuation": ")" +
         continuation + R"("}, "doc_id": )" + doc_id + R"(, "idx": )" + idx + R"(, "label": )" +
         label + "}\n";
}

std::string problem_of(const TemporaryDirectory& folder, const std::string& text) {
  write_text(folder / "requests.jsonl", text);
  return sentence_of(ErrorKind::kInput, [&] { read_request_file(folder / "requests.jsonl"); });
}

}  // namespace

TEST_CASE("a label that is no number belongs to an only continuation", "[eval]") {
  const TemporaryDirectory folder;
  write_text(folder / "requests.jsonl", line("4", "0", R"(["signs"])") + line("9", "0", "null"));
  const auto examples = read_request_file(folder / "requests.jsonl");
  REQUIRE(examples.size() == 2);
  CHECK(examples[0].doc_id == 4);
  CHECK(examples[0].label == 0);
  CHECK(examples[1].doc_id == 9);
}

TEST_CASE("request lines that are not of the form are named", "[eval]") {
  const TemporaryDirectory folder;
  const std::string good = line("0", "0", "0");
  CHECK(problem_of(folder, good).empty());
  CHECK_THAT(problem_of(folder, good + "x\n"), Contains("requests.jsonl:2: is not valid JSON"));
  CHECK_THAT(problem_of(folder, "[]\n"), Contains("requests.jsonl:1: is not a JSON object"));
  CHECK_THAT(problem_of(folder, "{}\n"), Contains("`request_type` must be a text"));
  CHECK_THAT(problem_of(folder, R"({"request_type": "generate_until"})"),
             Contains("got generate_until"));
  CHECK_THAT(problem_of(folder, R"({"request_type": "loglikelihood", "request": [1]})"),
             Contains("`request` must be an object"));
  CHECK_THAT(problem_of(folder, line("-1", "0", "0")),
             Contains("`doc_id` must be a number from 0"));
  CHECK_THAT(problem_of(folder, line("0", "1", "0")), Contains("`idx` must be 0, got 1"));
  CHECK_THAT(problem_of(folder, good + line("0", "2", "0")), Contains("`idx` must be 1, got 2"));
  CHECK_THAT(problem_of(folder, good + line("0", "1", "1")),
             Contains("`label` is not that of the document's first line"));
  CHECK_THAT(problem_of(folder, line("0", "0", "null") + line("0", "1", "null")),
             Contains("several continuations"));
  CHECK_THAT(problem_of(folder, line("0", "0", "1")),
             Contains("document 0 has 1 continuations and the label 1"));
  CHECK_THAT(problem_of(folder, line("1000000", "0", "0")), Contains("comes before the request"));
  CHECK_THAT(problem_of(folder, good + line("1000000", "0", "0", " b")),
             Contains("another continuation"));
}
