#include "eval/encoding.h"

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::eval;

namespace {

using Json = nlohmann::json;
using Tokens = std::vector<std::uint32_t>;

const std::filesystem::path kData = OLMO_TEST_DATA;

const data::Tokenizer& small_tokenizer() {
  static const auto tokenizer = data::Tokenizer::load(kData / "data/tokenizer_small.json");
  return tokenizer;
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

EncodedExample encode_one(Encoding encoding, const Example& example,
                          const EncodingOptions& options) {
  const Example* pointer = &example;
  return encode_examples(make_task(encoding), {&pointer, 1}, small_tokenizer(), options).at(0);
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

TEST_CASE("both encodings give the ids, cuts and lengths of their references", "[eval]") {
  std::ifstream file(kData / "eval/encoding.jsonl");
  int separate = 0;
  int joint = 0;
  for (std::string line; std::getline(file, line);) {
    INFO(line);
    const Json record = Json::parse(line);
    const EncodingOptions options{.max_length = record.at("max_length").get<std::int64_t>(),
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
                              {.max_length = row.cont_tokens + 1, .unconditional = false});
  CHECK(cut.group.sequences.size() == 2);
  CHECK(cut.rows[1].ctx_tokens == 2);
  CHECK(cut.rows[1].truncated_tokens == row.ctx_tokens - 2);
  CHECK(cut.rows[1].request_hash == row.request_hash);
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
    CHECK(error_of(encoding, {example}, {.max_length = 3}).find("the model takes 3") !=
          std::string::npos);

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
