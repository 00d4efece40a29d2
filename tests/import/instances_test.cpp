#include <fstream>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/evaluation_rows.h"
#include "core/hash.h"
#include "import/evaluation.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::import;
using namespace olmo::store;
using olmo::test::TemporaryDirectory;
using Json = nlohmann::json;

namespace {

constexpr char kSamples[] = "samples_arc_easy_2026-01-31T23-59-59.123456.jsonl";

InstanceFile read(const std::string& text, const std::string& name = kSamples) {
  const TemporaryDirectory folder;
  std::ofstream(folder / name, std::ios::binary) << text;
  return read_instance_file(folder / name);
}

/// As lm-eval 0.4 writes it now: numbers as text, requests as an object.
Json a_sample(std::int64_t doc_id, const std::vector<double>& logprobs, const Json& target) {
  Json sample = {{"doc_id", doc_id}, {"target", target}, {"acc", 1.0}, {"filter", "none"}};
  for (std::size_t i = 0; i < logprobs.size(); ++i) {
    sample["arguments"]["gen_args_" + std::to_string(i)] = {
        {"arg_0", "Question?"}, {"arg_1", " ä" + std::string(i + 1, 'b')}};
    const Json response = Json::array({Json(logprobs[i]).dump(), i == 0 ? "True" : "False"});
    sample["resps"].push_back(Json::array({response}));
  }
  return sample;
}

std::string failure(const Json& line) {
  try {
    (void)read(line.dump());
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    const std::string what = error.what();
    return what.substr(what.find(".jsonl:") + 7);
  }
  return "no error";
}

std::string sentence(const std::string& text, const std::string& name) {
  try {
    InstanceFile file = read(text, name);
    rank_instances(file, ImportMetric::kAccNorm);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("lm-eval's samples become options with the hash of our own requests", "[import]") {
  auto file = read(a_sample(3, {-1.25, -0.1000000000000000194, -7}, "1").dump() + "\n" +
                   a_sample(4, {-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11}, "0").dump());
  CHECK(file.task == "arc_easy");
  CHECK(file.convention == "lm-eval");
  CHECK(file.instances == 2);
  REQUIRE(file.rows.size() == 14);
  rank_instances(file, ImportMetric::kAcc);
  const auto& row = file.rows[1];
  CHECK(row.task == "arc_easy");
  CHECK(row.doc_id == 3);
  CHECK(row.cont_id == 1);
  CHECK(row.label == 1);
  CHECK(row.cont_chars == 3);
  CHECK(row.cont_bytes == 4);
  CHECK(row.logprob == -0.1000000000000000194);
  CHECK_FALSE(row.is_greedy);
  CHECK(file.rows[0].is_greedy);
  CHECK(row.request_hash == sha256(std::string("Question?\0 äbb", 15)).hex());
  CHECK(row.request_hash == request_hash("Question?", " äbb"));
  CHECK(row.rank == 1);
  CHECK(row.margin == row.logprob - -1.25);
  CHECK(file.rows[0].rank == 2);
  CHECK(file.rows[2].rank == 3);
  CHECK(file.rows[13].logprob == -11);  // gen_args_10 comes after gen_args_9
  CHECK(file.rows[13].cont_chars == 12);
}

TEST_CASE("acc_norm ranks by the logprob per code point, as lm-eval's does", "[import]") {
  auto file = read(a_sample(0, {-2, -2.5}, "0").dump());
  rank_instances(file, ImportMetric::kAcc);
  CHECK(file.rows[0].rank == 1);
  rank_instances(file, ImportMetric::kAccNorm);
  CHECK(file.rows[1].rank == 1);
  CHECK(file.rows[1].margin == -2.5 / 3 - -2.0 / 2);
}

TEST_CASE("older samples list their requests, and a target may be a text", "[import]") {
  Json sample = a_sample(0, {-2, -1}, "äbb");
  sample["arguments"] = Json::parse(R"([["Q", " äb"], ["Q", " äbb"]])");
  sample["resps"] = Json::parse("[[[-2.0, true]], [[-1.0, false]]]");
  const auto file = read(sample.dump(), "samples_mine.jsonl");
  CHECK(file.task == "mine");
  CHECK(file.rows[0].label == 1);
  CHECK(file.rows[0].is_greedy);
}

TEST_CASE("where only contexts differ the log's acc tells which is right", "[import]") {
  Json sample = a_sample(0, {-2, -1}, "so it was.");
  sample["arguments"] = Json::parse(R"([["Anna", " so it was."], ["Berta", " so it was."]])");
  CHECK(read(sample.dump()).rows[0].label == 1);
  sample["acc"] = 0.0;
  CHECK(read(sample.dump()).rows[0].label == 0);
  sample.erase("acc");
  CHECK(failure(sample) == "1: which option is right cannot be told from target 'so it was.'");
}

TEST_CASE("what lm-eval asked for acc_mutual_info is no option", "[import]") {
  Json sample = a_sample(0, {-3.0, -2.5}, "1");
  for (const std::size_t i : {0, 1}) {
    const auto whole = "gen_args_" + std::to_string(i);
    sample["arguments"]["gen_args_" + std::to_string(i + 2)] = {
        {"arg_0", ""}, {"arg_1", sample["arguments"][whole]["arg_1"]}};
    const Json response = Json::array({i == 0 ? "-1.25" : "-4.5", "False"});
    sample["resps"].push_back(Json::array({response}));
  }
  const InstanceFile file = read(sample.dump());
  REQUIRE(file.rows.size() == 2);
  CHECK(file.rows[0].unconditional_logprob == -1.25);
  CHECK(file.rows[1].logprob == -2.5);
  CHECK(file.rows[1].unconditional_logprob == -4.5);
}

TEST_CASE("a target that contradicts the log's acc is no index", "[import]") {
  Json sample = a_sample(0, {-3.0, -2.5}, "0");
  CHECK(failure(sample) == "1: which option is right cannot be told: by target '0' acc would be 0");
  sample["acc"] = 0.0;
  CHECK(read(sample.dump()).rows[0].label == 0);
  sample["target"] = "1";
  CHECK(failure(sample) == "1: which option is right cannot be told: by target '1' acc would be 1");
}

TEST_CASE("oe-eval's predictions become options without texts", "[import]") {
  const Json line = {{"doc_id", 5},
                     {"native_id", "Mercury_1"},
                     {"label", 0},
                     {"metrics", {{"acc_raw", 1}}},
                     {"model_output",
                      {{{"sum_logits", -3.5},
                        {"num_tokens", 2},
                        {"num_tokens_all", 12},
                        {"num_chars", 5},
                        {"is_greedy", true},
                        {"sum_logits_uncond", -4.25}},
                       {{"sum_logits", -4}, {"num_tokens", 3}, {"num_chars", 9}}}}};
  auto file = read(line.dump(), "task-012-arc_easy:rc-0shot-predictions.jsonl");
  CHECK(file.task == "arc_easy:rc-0shot");
  CHECK(file.convention == "oe");
  rank_instances(file, ImportMetric::kAcc);
  const auto& row = file.rows[0];
  CHECK(row.native_id == "Mercury_1");
  CHECK(row.logprob == -3.5);
  CHECK(row.cont_tokens == 2);
  CHECK(row.ctx_tokens == 10);
  CHECK(row.cont_chars == 5);
  CHECK(row.is_greedy);
  CHECK(row.unconditional_logprob == -4.25);
  CHECK(row.request_hash.empty());
  CHECK(row.rank == 1);
  rank_instances(file, ImportMetric::kAccNorm);
  CHECK(file.rows[1].rank == 1);
}

TEST_CASE("instances that cannot be understood are named", "[import]") {
  const auto with = [](const char* key, const Json& value) {
    Json sample = a_sample(0, {-2, -1}, "1");
    sample[key] = value;
    return failure(sample);
  };
  CHECK(with("doc_id", -1) == "1: 'doc_id' must be a number from 0, got '-1'");
  CHECK(with("doc_id", "x") == "1: 'doc_id' must be a number from 0, got '\"x\"'");
  CHECK(with("resps", Json::array({1})) == "1: must have as many responses as arguments");
  CHECK_THAT(with("resps", Json::parse(R"([["lol"], ["lol"]])")),
             Catch::Contains("is of no multiple-choice task"));
  CHECK(with("resps", Json::parse(R"([[["nan", "False"]], [["-1", "False"]]])")) ==
        "1: a logprob must be a finite number, got '\"nan\"'");
  CHECK(with("arguments", {{"a", 1}, {"b", 2}}) == "1: has no 'gen_args_0'");
  CHECK(with("arguments", {{1, 2}, {3, 4}}) ==
        "1: a request must be two texts, context and continuation");
  CHECK(with("target", "[0, 1]") == "1: which option is right cannot be told from target '[0, 1]'");
  CHECK(failure(a_sample(0, {-1}, "0")) == "1: is of no multiple-choice task: it has one request");
  CHECK(failure({{"doc_id", 0}}) == "1: has no 'arguments'");
  CHECK(failure({{"model_output", {1, 2}}, {"label", 0}, {"doc_id", 0}}) ==
        "1: has no 'sum_logits'");
  const auto line = a_sample(0, {-2, -1}, "1").dump() + "\n";
  CHECK_THAT(sentence(line + line, "samples_a.jsonl"),
             Catch::EndsWith("samples_a.jsonl:2: doc_id 0 occurs twice"));
  Json other = a_sample(0, {-2, -1}, "1");
  other["filter"] = "strict";
  CHECK_THAT(sentence(line + other.dump(), "samples_a.jsonl"),
             Catch::EndsWith("samples_a.jsonl:2: is of filter 'strict', the lines before of "
                             "'none': import a file with the lines of one of them"));
  CHECK_THAT(sentence(R"({
  "results": {"arc_easy": {"acc,none": 0.5}},
  "n-shot": {"arc_easy": 0}
})",
                      "results_2026.json"),
             Catch::Contains("results_2026.json: is lm-eval's summary, which has no instances"));
  CHECK_THAT(sentence("\n", "samples_a.jsonl"), Catch::EndsWith("holds no instance"));
  CHECK_THAT(
      sentence(R"({"doc_id":0,"label":0,"model_output":[{"sum_logits":-1},{"sum_logits":-2}]})",
               "x.jsonl"),
      Catch::Contains("use --metric acc"));
}

TEST_CASE("imported instances are a finished evaluation", "[import]") {
  Json wrong = a_sample(1, {-2, -1}, "0");
  wrong["acc"] = 0.0;
  auto file = read(a_sample(0, {-2, -1}, "1").dump() + "\n" + wrong.dump());
  rank_instances(file, ImportMetric::kAcc);
  const TemporaryDirectory folder;
  RecordDatabase records(folder / "evals.db", OpenMode::kCreate);
  CHECK_FALSE(find_imported_evaluation(records, {file}, ImportMetric::kAcc));
  ImportedEvaluation evaluation;
  evaluation.checkpoint = "theirs";
  const auto id = write_instances(records, {file}, evaluation);
  CHECK(find_imported_evaluation(records, {file}, ImportMetric::kAcc) == id);
  CHECK_FALSE(find_imported_evaluation(records, {file}, ImportMetric::kAccNorm));
  const EvaluationDb db(records);
  CHECK(db.entry(id).status == "finished");
  CHECK(db.entry(id).record.checkpoint == "theirs");
  CHECK(db.options(id, "arc_easy").size() == 4);
  CHECK(db.instance(id, "arc_easy", 1)[1].logprob == -1);
  REQUIRE(db.tasks(id).size() == 1);
  CHECK(db.tasks(id)[0].status == "finished");
  CHECK(db.tasks(id)[0].record.primary_metric == "acc");
  REQUIRE(db.metrics(id, "arc_easy").size() == 1);
  CHECK(db.metrics(id, "arc_easy")[0].value == 0.5);
  CHECK(db.metrics(id, "arc_easy")[0].standard_error == 0.5);
  CHECK_THROWS_WITH(write_instances(records, {file, file}, evaluation),
                    Catch::Contains("another file is of task arc_easy"));
}
