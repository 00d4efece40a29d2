#include "eval/rank_classification.h"

#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/output_file.h"
#include "core/hash.h"
#include "eval/hash_model.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::eval;
using olmo::eval::test::HashModel;

namespace {

using Json = nlohmann::json;
using Tokens = std::vector<std::uint32_t>;

const std::filesystem::path kData = OLMO_TEST_DATA;

const data::Tokenizer& small_tokenizer() {
  static const auto tokenizer = data::Tokenizer::load(kData / "data/tokenizer_small.json");
  return tokenizer;
}

// Instances with shared and with own contexts, as winogrande's.
LoadedTask make_task(const std::string& name, int count) {
  LoadedTask loaded;
  loaded.task.name = name;
  loaded.task.primary_metric = "acc";
  loaded.task.metrics = {{"acc", "sum"}, {"pmi_dc", "pmi"}};
  for (int i = 0; i < count; ++i) {
    Example example;
    example.doc_id = i;
    example.label = i % 2;
    const std::string context = name + ": the word " + std::to_string(i);
    for (const std::string end : {" naresi", " bacodu fegilo", " it's"})
      example.options.push_back({context, end, "Answer:"});
    example.options.push_back({context + " to", " it's", {}});
    loaded.examples.push_back(example);
  }
  return loaded;
}

struct Result {
  std::map<std::pair<std::string, std::int64_t>, std::vector<OptionRow>> rows;
  std::map<std::string, std::string> failures;
  std::map<std::string, ErrorKind> kinds;
  std::vector<std::string> order;  // tasks, as their last instances came
  std::int64_t done = 0, total = 0;
};

Result evaluate(const std::vector<LoadedTask>& tasks, const ScoreTokens& model,
                const RankOptions& options = {}) {
  Result result;
  RankCallbacks callbacks;
  callbacks.on_instance = [&](std::span<const OptionRow> rows) {
    const auto key = std::pair(rows[0].task, rows[0].doc_id);
    CHECK(result.rows.try_emplace(key, rows.begin(), rows.end()).second);
    if (result.order.empty() || result.order.back() != key.first) result.order.push_back(key.first);
  };
  callbacks.on_progress = [&](std::int64_t done, std::int64_t total, const std::string& task) {
    CHECK(done > result.done);
    CHECK(done <= total);
    CHECK(!task.empty());
    result.done = done;
    result.total = total;
  };
  callbacks.on_task_failed = [&](const std::string& task, const Error& error) {
    CHECK(result.failures.emplace(task, error.what()).second);
    result.kinds.emplace(task, error.kind());
  };
  evaluate_tasks(tasks, small_tokenizer(), model, options, callbacks);
  return result;
}

void check_same(const Result& a, const Result& b) {
  REQUIRE(a.rows.size() == b.rows.size());
  for (const auto& [key, rows] : a.rows) {
    const auto& others = b.rows.at(key);
    REQUIRE(rows.size() == others.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i].logprob == others[i].logprob);
      CHECK(rows[i].unconditional_logprob == others[i].unconditional_logprob);
      CHECK(rows[i].unconditional_logit_sum == others[i].unconditional_logit_sum);
      CHECK(rows[i].is_greedy == others[i].is_greedy);
      CHECK(rows[i].rank == others[i].rank);
      CHECK(rows[i].margin == others[i].margin);
    }
  }
}

// A model that fails on one token and scores all others.
ScoreTokens failing_on(std::int64_t id, float score) {
  return [id, score](const TokenForest& forest, std::span<TokenScore> scores) {
    HashModel()(forest, scores);
    for (std::size_t t = 0; t < scores.size(); ++t)
      if (forest.targets[t].label == id) scores[t].log_prob = score;
  };
}

std::int64_t id_of(std::string_view text) {
  std::vector<std::uint32_t> ids;
  small_tokenizer().encode(text, ids);
  return ids.back();
}

Task make_task(Encoding encoding) {
  Task task;
  task.name = "sums";
  task.encoding = encoding;
  return task;
}

Example make_example(const std::string& context, const std::string& continuation) {
  Example example;
  example.options = {{context, continuation, {}}};
  return example;
}

EncodedExample encode_one(Encoding encoding, const Example& example, const EncodingOptions& options,
                          const data::Tokenizer& tokenizer = small_tokenizer()) {
  const Example* pointer = &example;
  return encode_examples(make_task(encoding), {&pointer, 1}, tokenizer, options).at(0);
}

// The small tokenizer with <|pad|> before and <|end|> after every text.
const data::Tokenizer& framing_tokenizer() {
  static const auto tokenizer = [] {
    const olmo::test::TemporaryDirectory folder;
    Json file = Json::parse(read_file(kData / "data/tokenizer_small.json"));
    file["post_processor"] = {
        {"type", "BertProcessing"}, {"cls", {"<|pad|>", 1}}, {"sep", {"<|end|>", 0}}};
    write_file_atomically(folder / "tokenizer.json", file.dump());
    return data::Tokenizer::load(folder / "tokenizer.json");
  }();
  return tokenizer;
}

Tokens tokens_of(const std::string& text, data::Tokenizer::SpecialTokens special) {
  Tokens ids;
  framing_tokenizer().encode(text, ids, special);
  return ids;
}

std::string error_of(Encoding encoding, const std::vector<Example>& examples,
                     const EncodingOptions& options = {}) {
  std::vector<const Example*> pointers;
  for (const auto& example : examples) pointers.push_back(&example);
  try {
    encode_examples(make_task(encoding), pointers, small_tokenizer(), options);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("tasks are evaluated one after the other, each instance once", "[eval]") {
  const std::vector<LoadedTask> tasks = {make_task("zeta", 30), make_task("alpha", 20)};
  const Result result = evaluate(tasks, HashModel());
  CHECK(result.rows.size() == 50);
  CHECK(result.order == std::vector<std::string>{"zeta", "alpha"});
  CHECK(result.done == result.total);
  CHECK(result.failures.empty());
  const auto& rows = result.rows.at({"alpha", 7});
  REQUIRE(rows.size() == 4);
  std::int64_t ranks = 0;
  for (const auto& row : rows) {
    CHECK(row.label == 1);
    CHECK(row.logprob < 0);
    CHECK(row.unconditional_logprob.has_value() == (row.cont_id != 3));
    CHECK((row.rank == 1) == (row.margin > 0));
    ranks += row.rank;
  }
  CHECK(ranks == 1 + 2 + 3 + 4);
}

TEST_CASE("neither options of the queue nor other tasks change an instance", "[eval]") {
  const std::vector<LoadedTask> tasks = {make_task("one", 25), make_task("two", 25)};
  const Result whole = evaluate(tasks, HashModel());
  check_same(whole, evaluate(tasks, HashModel(), {.queue = {.forest_rows = 9}}));
  check_same(whole, evaluate(tasks, HashModel(), {.queue = {.share_prefixes = false}}));
  check_same(whole, evaluate({tasks[1], tasks[0]}, HashModel()));
  Result parts = evaluate({tasks[0]}, HashModel());
  parts.rows.merge(evaluate({tasks[1]}, HashModel()).rows);
  check_same(whole, parts);

  RankOptions resumed;
  for (int i = 0; i < 20; ++i) resumed.done.insert({"one", i});
  Result rest = evaluate(tasks, HashModel(), resumed);
  CHECK(rest.rows.size() == 30);
  for (const auto& [key, rows] : whole.rows)
    if (resumed.done.contains(key)) rest.rows.emplace(key, rows);
  check_same(whole, rest);
}

TEST_CASE("a task with bad data fails alone", "[eval]") {
  std::vector<LoadedTask> tasks = {make_task("bad", 10), make_task("good", 10),
                                   make_task("odd", 10)};
  tasks[0].examples[4].options[2].continuation = "";
  tasks[2].task.primary_metric = "f1";
  const Result result = evaluate(tasks, HashModel());
  CHECK(result.rows.size() == 10);
  CHECK(result.failures.size() == 2);
  CHECK(result.failures.at("bad").find("bad: doc_id 4, continuation 2 ''") == 0);
  CHECK(result.kinds.at("bad") == ErrorKind::kInput);
  CHECK(result.failures.at("odd").find("'f1'") != std::string::npos);
}

TEST_CASE("a task with scores that are not finite fails alone, and early", "[eval]") {
  std::vector<LoadedTask> tasks = {make_task("nan", 400), make_task("good", 10)};
  for (auto& example : tasks[0].examples) example.options[1].continuation = " word!";
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const Result result = evaluate(tasks, failing_on(id_of("!"), bad));
    CHECK(result.rows.size() == 10);
    CHECK(result.failures.size() == 1);
    CHECK(result.failures.at("nan").find(bad == bad ? "nan: checkpoint gives infinite"
                                                    : "nan: checkpoint gives NaN") == 0);
    CHECK(result.kinds.at("nan") == ErrorKind::kDiverged);
    CHECK(result.done < result.total / 2);
  }
}

TEST_CASE("without unconditional requests the rows have none, and cost less", "[eval]") {
  const std::vector<LoadedTask> tasks = {make_task("one", 25)};
  const Result both = evaluate(tasks, HashModel());
  RankOptions options;
  options.encoding.unconditional = false;
  const Result result = evaluate(tasks, HashModel(), options);
  CHECK(result.total < both.total);
  for (const auto& [key, rows] : result.rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(!rows[i].unconditional_logprob);
      CHECK(rows[i].logprob == both.rows.at(key)[i].logprob);
    }
  }
}

TEST_CASE("an error of the model itself ends the evaluation", "[eval]") {
  const ScoreTokens broken = [](const TokenForest&, std::span<TokenScore>) {
    throw Error(ErrorKind::kFailure, "no memory");
  };
  CHECK_THROWS_AS(evaluate({make_task("one", 3)}, broken), Error);
}

TEST_CASE("both encodings give the ids, cuts and lengths of their references", "[eval]") {
  std::ifstream file(kData / "eval/encoding.jsonl");
  int separate = 0;
  int joint = 0;
  for (std::string line; std::getline(file, line);) {
    INFO(line);
    const Json record = Json::parse(line);
    const auto max_length = record.at("max_length").get<std::int64_t>();
    const EncodingOptions options{.max_length = max_length,
                                  .olmo_max_length = max_length,
                                  .prefix_token = record.at("prefix").get<std::uint32_t>()};
    const std::string continuation = record.at("continuation");
    Example example = make_example(record.at("context"), continuation);
    if (record.contains("separate")) {
      const Json& wanted = record.at("separate");
      example.options[0].unconditional = "si to";
      const auto encoded = encode_one(Encoding::kSeparate, example, options);
      CHECK(encoded.group.sequences.at(0).tokens == wanted.at("tokens").get<Tokens>());
      CHECK(encoded.group.sequences.at(1).tokens == wanted.at("unconditional").get<Tokens>());
      CHECK(encoded.unconditional.at(0) == 1U);
      const OptionRow& row = encoded.rows.at(0);
      CHECK(row.ctx_tokens == wanted.at("ctx_len").get<std::int64_t>());
      CHECK(row.cont_tokens == wanted.at("cont_len").get<std::int64_t>());
      // OLMo drops the first character, whatever it is.
      const int spaced = continuation.starts_with(' ') ? 0 : 1;
      CHECK(row.cont_chars == wanted.at("chars").get<std::int64_t>() + spaced);
      CHECK(row.cont_bytes == wanted.at("bytes").get<std::int64_t>() + spaced);
      ++separate;
    }
    if (record.contains("joint")) {
      const Json& wanted = record.at("joint");
      example.options[0].unconditional.reset();
      const auto encoded = encode_one(Encoding::kJoint, example, options);
      CHECK(encoded.group.sequences.at(0).tokens == wanted.at("tokens").get<Tokens>());
      CHECK(encoded.rows.at(0).cont_tokens == wanted.at("cont_len").get<std::int64_t>());
      ++joint;
    }
  }
  CHECK(separate > 200);
  CHECK(joint > 200);
}

TEST_CASE("lm-eval's encoding has the tokenizer's special tokens, OLMo's has none", "[eval]") {
  using Special = data::Tokenizer::SpecialTokens;
  Example example = make_example("the word", " naresi");
  example.options[0].unconditional = "";
  const auto joint =
      encode_one(Encoding::kJoint, example, {.prefix_token = 5}, framing_tokenizer());
  // What follows the ids of <|pad|> the word <|end|> in those of <|pad|> the word naresi <|end|>.
  Tokens wanted = tokens_of("the word", Special::kAdded);
  const Tokens whole = tokens_of("the word naresi", Special::kAdded);
  const auto rest = whole.begin() + std::ssize(wanted);
  wanted.insert(wanted.end(), rest, whole.end());
  CHECK(joint.group.sequences.at(0).tokens == wanted);
  CHECK(wanted.front() == 1);
  CHECK(wanted.back() == 0);
  Tokens after_nothing = tokens_of(" naresi", Special::kLeftOut);
  after_nothing.insert(after_nothing.begin(), 5);
  CHECK(joint.group.sequences.at(1).tokens == after_nothing);

  const auto separate =
      encode_one(Encoding::kSeparate, example, {.prefix_token = 5}, framing_tokenizer());
  CHECK(separate.group.sequences.at(0).tokens ==
        encode_one(Encoding::kSeparate, example, {.prefix_token = 5}).group.sequences.at(0).tokens);
}

TEST_CASE("lm-eval's encoding adds no special tokens to a text that begins with one", "[eval]") {
  using Special = data::Tokenizer::SpecialTokens;
  const auto encoded = encode_one(Encoding::kJoint, make_example("<|pad|>the word", " naresi"),
                                  {.prefix_token = 1}, framing_tokenizer());
  CHECK(encoded.group.sequences.at(0).tokens ==
        tokens_of("<|pad|>the word naresi", Special::kLeftOut));
}

TEST_CASE("an option's row says what the model saw of it", "[eval]") {
  Example example;
  example.doc_id = 12;
  example.native_id = "test-12";
  example.label = 1;
  example.options = {{"Question: the\nAnswer:", " bacodu", "Answer:"},
                     {"Question: the\nAnswer:", " é日", {}}};
  const auto whole = encode_one(Encoding::kSeparate, example, {});
  REQUIRE(whole.rows.size() == 2);
  const OptionRow& row = whole.rows[1];
  CHECK(row.task == "sums");
  CHECK(row.doc_id == 12);
  CHECK(row.cont_id == 1);
  CHECK(row.native_id == "test-12");
  CHECK(row.label == 1);
  CHECK(row.cont_chars == 2);
  CHECK(row.cont_bytes == 5);
  CHECK(row.truncated_tokens == 0);
  using namespace std::string_literals;
  CHECK(row.request_hash == sha256("Question: the\nAnswer:\0 é日"s).hex());
  // two conditional sequences, then the one option's that has a prompt
  CHECK(whole.group.sequences.size() == 3);
  CHECK(whole.unconditional == std::vector<std::optional<std::size_t>>{2, {}});

  const auto cut = encode_one(Encoding::kSeparate, example,
                              {.olmo_max_length = row.cont_tokens + 1, .unconditional = false});
  CHECK(cut.group.sequences.size() == 2);
  CHECK(cut.rows[1].ctx_tokens == 2);
  CHECK(cut.rows[1].truncated_tokens == row.ctx_tokens - 2);
  CHECK(cut.rows[1].request_hash == row.request_hash);
}

TEST_CASE("OLMo's requests are cut to its length, lm-eval's to the model's", "[eval]") {
  const Example example = make_example("bacodu fegilo naresi bacodu fegilo naresi", " word");
  const EncodingOptions options{.max_length = 4, .olmo_max_length = 2, .unconditional = false};
  const auto inputs = [&](Encoding encoding) {
    return encode_one(encoding, example, options).group.sequences.at(0).tokens.size() - 1;
  };
  CHECK(inputs(Encoding::kSeparate) == 2);
  CHECK(inputs(Encoding::kJoint) == 4);
}

TEST_CASE("an unconditional request without a prompt starts with the prefix token", "[eval]") {
  Example example = make_example("the", " word");
  example.options[0].unconditional = "";
  for (const auto encoding : {Encoding::kSeparate, Encoding::kJoint}) {
    const auto encoded = encode_one(encoding, example, {.prefix_token = 5});
    CHECK(encoded.group.sequences.at(1).tokens.at(0) == 5);
    const std::string error = error_of(encoding, {example});
    CHECK(error.find("sums: doc_id 0, continuation 0 ' word'") == 0);
    CHECK(error.find("start of text") != std::string::npos);
  }
}

TEST_CASE("what cannot be asked is refused by task, instance and continuation", "[eval]") {
  const auto both = {Encoding::kSeparate, Encoding::kJoint};
  for (const auto encoding : both) {
    Example example = make_example("the", " word");
    example.doc_id = 7;
    example.options.push_back({"the", "", {}});
    CHECK(error_of(encoding, {example}).find("sums: doc_id 7, continuation 1 '': it has no ") == 0);

    example.options[1].continuation = " bacodu fegilo naresi bacodu fegilo";
    CHECK(error_of(encoding, {example}, {.max_length = 3, .olmo_max_length = 3})
              .find("the model takes 3") != std::string::npos);

    example.options[1].continuation = " \xff";
    CHECK(error_of(encoding, {example}).find("sums: doc_id 7, continuation 1 ' \uFFFD'") == 0);

    example.options.pop_back();
    CHECK(error_of(encoding, {example}).empty());
    CHECK(error_of(encoding, {example, example}) == "sums: doc_id 7 occurs twice");
    example.label = 1;
    CHECK(error_of(encoding, {example}) ==
          "sums: doc_id 7: the label must be one of 1 options, got 1");
  }
}

TEST_CASE("of several bad instances the first is reported", "[eval]") {
  std::vector<Example> examples(300, make_example("the", " word"));
  for (std::size_t i = 0; i < examples.size(); ++i) examples[i].doc_id = static_cast<int>(i);
  for (const std::size_t bad : {299U, 150U, 31U}) {
    examples[bad].options[0].continuation = "";
    CHECK(error_of(Encoding::kJoint, examples).find("doc_id " + std::to_string(bad) + ",") !=
          std::string::npos);
  }
}
