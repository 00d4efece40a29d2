#include "report/record/recorded_evaluation.h"

#include <limits>

#include "core/error.h"
#include "report/evaluation_fixture.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::EvaluationFile;
using olmo::test::mentions;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("an evaluation is read with its instances by doc_id", "[report]") {
  EvaluationFile file;
  file.begin("piqa");
  for (const std::int64_t doc_id : {5, 2})
    file.db().record_options(EvaluationFile::ranked("piqa", doc_id, {-3, -1, -2}));
  file.db().end_task("piqa", "finished");
  file.add_task(
      "arc", 1, [](auto, auto option) { return option == 0 ? -1.0 : -2.0; }, "");
  file.add_suite("paloma", 1, [](auto index) { return 10.0 + static_cast<double>(index); });
  const EvaluationData data = file.read();

  CHECK(data.damage.empty());
  CHECK(data.step == 7);
  CHECK(data.tokenizer_digest == test::plain_evaluation().tokenizer_digest);
  REQUIRE(data.tasks.size() == 2);
  CHECK(data.tasks[0].task == "arc");
  CHECK(data.tasks[0].instances[0].requests == 0);
  CHECK(data.tasks[0].instances[0].right());

  const EvaluatedTask& piqa = data.tasks[1];
  CHECK_FALSE(piqa.is_cost());
  REQUIRE(piqa.instances.size() == 2);
  CHECK(piqa.instances[0].doc_id == 2);
  CHECK(piqa.instances[1].doc_id == 5);
  CHECK(piqa.instances[1].first_option == 3);
  CHECK(piqa.instances[1].options == 3);
  CHECK(piqa.instances[1].chosen == 1);
  CHECK(piqa.instances[1].margin == 1);
  CHECK_FALSE(piqa.instances[1].right());
  CHECK(piqa.instances[0].requests != 0);
  CHECK(piqa.instances[0].requests != piqa.instances[1].requests);
  CHECK(piqa.logprobs == std::vector<double>{-3, -1, -2, -3, -1, -2});

  REQUIRE(data.suites.size() == 1);
  REQUIRE(data.suites[0].documents.size() == 2);
  CHECK(data.suites[0].documents[1].source == "wiki");
  CHECK(data.suites[0].documents[1].nll == 11);
  CHECK(data.suites[0].documents[1].text != data.suites[0].documents[0].text);
}

TEST_CASE("what makes an evaluation unfit is said, and left out", "[report]") {
  EvaluationFile file;
  file.begin("piqa");
  const auto add = [&](std::int64_t doc_id, const auto& spoil) {
    auto rows = EvaluationFile::ranked("piqa", doc_id, {-1, -2});
    spoil(rows);
    file.db().record_options(rows);
  };
  add(0, [](auto&) {});
  add(1, [](auto& rows) { rows[1].logprob = kNaN; });
  add(2, [](auto& rows) { rows[0].logprob = -kInfinity; });
  add(3, [](auto& rows) { rows[0].margin = kNaN; });
  add(4, [](auto& rows) { rows[0].rank = 2; });
  add(5, [](auto& rows) { rows[1].rank = 1; });
  add(6, [](auto& rows) { rows[1].cont_id = 2; });
  add(7, [](auto& rows) { rows[0].label = rows[1].label = 2; });
  add(8, [](auto& rows) { rows[1].label = 1; });
  add(9, [](auto&) {});
  file.db().end_task("piqa", "finished");
  const EvaluationData data = file.read();

  REQUIRE(data.tasks.size() == 1);
  REQUIRE(data.tasks[0].instances.size() == 2);
  CHECK(data.tasks[0].instances[1].doc_id == 9);
  CHECK(data.tasks[0].instances[1].first_option == 2);
  CHECK(data.tasks[0].logprobs.size() == 4);
  CHECK(data.damage.size() == 4);
  CHECK(mentions(data.damage, "piqa: a score is missing or not finite: 3 instances"));
  CHECK(mentions(data.damage, "not exactly one option has rank 1: 2 instances, the first is 4"));
  CHECK(mentions(data.damage, "options are missing: 1 instance, 6"));
  CHECK(mentions(data.damage, "the label is none of the options: 2 instances, the first is 7"));
}

TEST_CASE("damaged documents and unfinished tasks are damage", "[report]") {
  EvaluationFile file;
  file.begin("c4", "ppl");
  auto uncounted = EvaluationFile::document("c4", "c4", 1, 1);
  uncounted.bytes = -1;
  file.db().record_documents(std::vector<DocumentRow>{EvaluationFile::document("c4", "c4", 0, kNaN),
                                                      uncounted,
                                                      EvaluationFile::document("c4", "c4", 2, 1)});
  file.db().end_task("c4", "failed", "the disk is full");
  file.begin("piqa");
  file.db().end_task("piqa", "skipped", "no such file");
  file.begin("arc");
  const EvaluationData data = file.read("interrupted");

  CHECK(data.suites[0].documents.size() == 1);
  CHECK(data.damage.size() == 6);
  CHECK(mentions(data.damage, "the evaluation is interrupted"));
  CHECK(mentions(data.damage, "c4: is failed and not finished: the disk is full"));
  CHECK(mentions(data.damage, "c4: the score is missing or not finite: 1 document, 0"));
  CHECK(mentions(data.damage, "c4: the count of tokens or bytes is impossible: 1 document, 1"));
  CHECK(mentions(data.damage, "piqa: is skipped and not finished: no such file"));
  CHECK(mentions(data.damage, "arc: is running"));

  EvaluationFile empty;
  CHECK(mentions(empty.read().damage, "holds no task"));
  CHECK_THROWS_AS(read_evaluation(empty.records(), "nothing"), Error);
}

TEST_CASE("a task whose only option is the right one is a cost", "[report]") {
  EvaluationFile file;
  file.begin("piqa_bpb", "other");
  file.db().record_options(EvaluationFile::ranked("piqa_bpb", 0, {-1}));
  file.begin("arc", "ce_loss");
  file.db().record_options(EvaluationFile::ranked("arc", 0, {-1, -2}));
  file.begin("copa");
  const EvaluationData data = file.read();
  REQUIRE(data.tasks.size() == 3);
  CHECK(data.tasks[0].is_cost());
  CHECK_FALSE(data.tasks[1].is_cost());
  CHECK(data.tasks[2].is_cost());
  CHECK(data.tasks[2].instances[0].answer_bytes == 10);
  CHECK(data.tasks[2].instances[0].answer_tokens == 2);
}

TEST_CASE("the text of a document that no record hashes is not known", "[report]") {
  EvaluationFile file;
  file.begin("c4", "ppl");
  auto row = EvaluationFile::document("c4", "c4", 0, 1);
  row.text_hash.clear();
  file.db().record_documents(std::vector<DocumentRow>{row});
  CHECK(file.read().suites.at(0).documents.at(0).text == 0);
}

TEST_CASE("a score that no sum of log-likelihoods reaches is damage, though it is finite",
          "[report]") {
  EvaluationFile file;
  file.begin("piqa");
  file.db().record_options(EvaluationFile::ranked("piqa", 0, {-1, -1e200}));
  CHECK(mentions(file.read().damage, "piqa: a score is missing or not finite: 1 instance, 0"));
}

TEST_CASE("a count of bytes that no document has is damage", "[report]") {
  EvaluationFile file;
  file.begin("c4", "ppl");
  constexpr std::int64_t kTooMany = std::int64_t{1} << 41;
  file.db().record_documents(
      std::vector<DocumentRow>{EvaluationFile::document("c4", "c4", 0, 1, kTooMany)});
  CHECK(mentions(file.read().damage, "c4: the count of tokens or bytes is impossible"));
}

TEST_CASE("limits are told in one number where all tasks have the same one", "[report]") {
  const auto limits = [](const std::vector<std::optional<std::int64_t>>& of_tasks) {
    EvaluationData data;
    for (const auto& limit : of_tasks)
      data.tasks.push_back({.task = "t" + std::to_string(data.tasks.size()), .asked = {limit, 64}});
    return limits_text(data);
  };
  CHECK(limits({{}, {}}).empty());
  CHECK(limits({2, 2}) == "2 instances a task");
  CHECK(limits({2}) == "2 instances of t0");
  CHECK(limits({2, {}, 3}) == "2 instances of t0, 3 instances of t2");
}

TEST_CASE("a limit counts documents or instances of each source of a suite", "[report]") {
  EvaluationData data;
  data.suites.push_back({.suite = "paloma", .convention = "catwalk", .asked = {.limit = 2}});
  CHECK(limits_text(data) == "2 documents of each source of paloma");
  data.suites.push_back({.suite = "v3", .convention = "olmo", .asked = {.limit = 2}});
  data.tasks.push_back({.task = "piqa", .asked = {.limit = 2}});
  CHECK(limits_text(data) == "2 instances a task and documents a source and instances a source");
}
