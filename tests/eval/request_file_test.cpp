#include "eval/request_file.h"

#include "task_data.h"

#include "support/catch.h"

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
