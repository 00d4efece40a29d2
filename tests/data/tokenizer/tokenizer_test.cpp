#include "data/tokenizer/tokenizer.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/output_file.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace {

using olmo::Error;
using olmo::ErrorKind;
using olmo::data::Tokenizer;
using olmo::test::TemporaryDirectory;
using Ids = std::vector<std::uint32_t>;

const std::filesystem::path kData = std::filesystem::path(OLMO_TEST_DATA) / "data";

const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::load(kData / "tokenizer_small.json");
  return tokenizer;
}

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::vector<nlohmann::json> read_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(file, line);) records.push_back(nlohmann::json::parse(line));
  return records;
}

/// `key` holds the expected ids.
void check_records(const Tokenizer& tokenizer, const std::filesystem::path& path,
                   const char* key = "ids") {
  for (const auto& record : read_lines(path)) {
    const auto text = record["text"].get<std::string>();
    const auto expected = record[key].get<Ids>();
    CAPTURE(text);
    CHECK(encode(tokenizer, text) == expected);
    CHECK(tokenizer.decode(expected) == record["decoded"].get<std::string>());
    CHECK(tokenizer.decode(expected, true) == record["decoded_skip_special"].get<std::string>());
  }
}

/// The tokenizer that `text` as the content of a tokenizer.json gives.
Tokenizer load_text(const std::string& text) {
  const TemporaryDirectory folder;
  olmo::write_file_atomically(folder / "tokenizer.json", text);
  return Tokenizer::load(folder / "tokenizer.json");
}

/// One line of message of the error that `text` gives.
std::string load_error(const std::string& text) {
  std::string message = "no error";
  try {
    (void)load_text(text);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    message = error.what();
  }
  CHECK(message.find('\n') == std::string::npos);
  return message;
}

/// The text of a tokenizer's file after `change`.
template <typename Change>
std::string changed(const char* file, Change change) {
  nlohmann::json root = nlohmann::json::parse(olmo::read_file(kData / file));
  change(root);
  return root.dump();
}

template <typename Change>
std::string load_error_after(Change change) {
  return load_error(changed("tokenizer_small.json", change));
}

using Catch::Contains;
using Json = nlohmann::json;

const Json kText = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};

Json special(const char* token) { return {{"SpecialToken", {{"id", token}, {"type_id", 0}}}}; }

/// A TemplateProcessing that knows <|end|> and <|pad|>.
Json template_of(const std::vector<Json>& single) {
  const auto token = [](const char* name, int id) {
    return Json{{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", Json::array()},
          {"special_tokens", {{"<|end|>", token("<|end|>", 0)}, {"<|pad|>", token("<|pad|>", 1)}}}};
}

std::string with_processor(const Json& processor) {
  return changed("tokenizer_small.json", [&](Json& root) { root["post_processor"] = processor; });
}

}  // namespace

TEST_CASE("encode and decode give what the tokenizers library gives", "[data]") {
  check_records(small_tokenizer(), kData / "tokenizer_small.golden.jsonl");
}

TEST_CASE("a tokenizer of OLMo 2's kind gives what the tokenizers library gives", "[data]") {
  const auto path = kData / "tokenizer_cl100k.golden.jsonl";
  check_records(Tokenizer::load(kData / "tokenizer_cl100k.json"), path);
  check_records(load_text(changed("tokenizer_cl100k.json",
                                  [](Json& root) { root["model"]["ignore_merges"] = false; })),
                path, "merging");
  check_records(load_text(changed("tokenizer_cl100k.json",
                                  [](Json& root) {
                                    Json& split = root["pre_tokenizer"]["pretokenizers"][0];
                                    split["behavior"] = "Removed";
                                    split["invert"] = true;
                                  })),
                path);
}

TEST_CASE("encode appends to the ids that are there", "[data]") {
  Ids ids = {7};
  small_tokenizer().encode("<|end|>", ids);
  CHECK(ids == Ids{7, small_tokenizer().token_to_id("<|end|>").value()});
}

TEST_CASE("special tokens of a post-processor stand around a text where they are asked for",
          "[data]") {
  const Json byte_level = {{"type", "ByteLevel"}, {"trim_offsets", true}};
  const Json bert = {{"type", "BertProcessing"}, {"sep", {"<|end|>", 0}}, {"cls", {"<|pad|>", 1}}};
  for (const Json& processor :
       {template_of({special("<|pad|>"), kText, special("<|end|>")}), bert,
        Json{{"type", "Sequence"},
             {"processors", {byte_level, template_of({kText}), bert, byte_level}}}}) {
    CAPTURE(processor.dump());
    const auto tokenizer = load_text(with_processor(processor));
    const Ids plain = encode(small_tokenizer(), "the word");
    CHECK(encode(tokenizer, "the word") == plain);
    Ids ids = {7};
    tokenizer.encode("the word", ids, Tokenizer::SpecialTokens::kAdded);
    Ids wanted = {7, 1};
    wanted.insert(wanted.end(), plain.begin(), plain.end());
    wanted.push_back(0);
    CHECK(ids == wanted);
    CHECK_THROWS_AS(tokenizer.encode("\xff", ids, Tokenizer::SpecialTokens::kAdded), Error);
    CHECK(ids == wanted);
  }
}

TEST_CASE("a post-processor that is not understood is refused by the name of the field", "[data]") {
  const auto error = [](const Json& processor) { return load_error(with_processor(processor)); };
  CHECK_THAT(error({{"type", "Tempering"}}),
             Contains(": `post_processor.type` 'Tempering' is not"));
  CHECK_THAT(error(template_of({special("<|pad|>")})),
             Contains(": `post_processor.single` must have sequence \"A\" once, got it 0 times"));
  CHECK_THAT(error(template_of({kText, kText})), Contains("got it 2 times"));
  CHECK_THAT(error(template_of({kText, special("<none>")})),
             Contains(": `post_processor.special_tokens` lacks \"<none>\""));
  CHECK_THAT(error(template_of({kText, {{"Sequence", {{"id", "B"}, {"type_id", 0}}}}})),
             Contains(": `post_processor.single[1]` must be sequence \"A\""));
  Json processor = template_of({special("<|pad|>"), kText});
  const Json second = {{"type", "Sequence"}, {"processors", {processor, processor}}};
  CHECK_THAT(error(second), Contains(": `post_processor.processors[1]` is the second that adds"));
  processor["special_tokens"]["<|pad|>"]["ids"] = {99999};
  CHECK_THAT(error(processor), Contains("adds id 99999, which no token has"));
  CHECK_THAT(error({{"type", "BertProcessing"}, {"cls", {"<|pad|>", 1}}, {"sep", "<|end|>"}}),
             Contains(": `post_processor.sep` must be [token, id]"));
}

TEST_CASE("encoding does not depend on what was encoded before", "[data]") {
  const auto records = read_lines(kData / "tokenizer_small.golden.jsonl");
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    const Tokenizer fresh = Tokenizer::load(kData / "tokenizer_small.json");
    if (std::distance(records.rbegin(), record) > 20) break;
    CHECK(encode(fresh, (*record)["text"].get<std::string>()) == (*record)["ids"].get<Ids>());
  }
}

TEST_CASE("encode_batch keeps the order and gives the ids of encode for any number of threads",
          "[data]") {
  std::vector<std::string> texts;
  for (const auto& record : read_lines(kData / "tokenizer_small.golden.jsonl")) {
    texts.push_back(record["text"].get<std::string>());
  }
  const std::vector<std::string_view> documents(texts.begin(), texts.end());
  std::vector<Ids> expected;
  for (const auto& text : texts) expected.push_back(encode(small_tokenizer(), text));
  for (const int threads : {1, 2, 3, 1000}) {
    CAPTURE(threads);
    CHECK(small_tokenizer().encode_batch(documents, threads) == expected);
  }
  CHECK(small_tokenizer().encode_batch({}, 2).empty());
}

TEST_CASE("a text's ids decode to the text if it is normalized and has no stripping token",
          "[data]") {
  const std::vector<std::string> texts = {"the  dog's\n\n  tail ", "日本 é 12",
                                          std::string("\0x\x7f", 3)};
  for (const std::string& text : texts) {
    CHECK(small_tokenizer().decode(encode(small_tokenizer(), text)) == text);
  }
}

TEST_CASE("long runs of one character take time in proportion", "[data]") {
  const Tokenizer cl100k = Tokenizer::load(kData / "tokenizer_cl100k.json");
  for (const std::string unit : {"a", " ", "!", "\n", "ba", " \n", "e\xCC\x81"}) {
    std::string text;
    for (int i = 0; i < 300000; ++i) text += unit;
    for (const Tokenizer* tokenizer : {&small_tokenizer(), &cl100k}) {
      const Ids ids = encode(*tokenizer, text);
      CHECK(ids.size() <= text.size());
      CHECK(!ids.empty());
    }
  }
}

TEST_CASE("text that is not UTF-8 is refused with the offset of its first bad byte", "[data]") {
  struct Case {
    std::string text;
    int offset;
  };
  const std::vector<Case> cases = {
      {"abc\xFF", 3},          {"\x80", 0},          {"aa\xC3", 2},
      {"\xC0\x80", 0},         {"x\xED\xA0\x80", 1}, {"\xE2\x82", 0},
      {"\xF4\x90\x80\x80", 0}, {"é\xE0\x80\x80", 2}, {"0123456789\xF5", 10}};
  for (const auto& [text, offset] : cases) {
    Ids ids = {1};
    CHECK_THROWS_WITH(small_tokenizer().encode(text, ids),
                      Contains("offset " + std::to_string(offset)));
    CHECK(ids == Ids{1});
  }
}

TEST_CASE("decode replaces each maximal part that is not UTF-8 and skips unknown ids", "[data]") {
  const auto byte = [](const char* token) { return small_tokenizer().token_to_id(token).value(); };
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(small_tokenizer().decode(Ids{byte("â"), byte("Ĥ"), byte("a")}) ==
        bad + "a");  // E2 82 without its end
  CHECK(small_tokenizer().decode(Ids{byte("â"), byte("Ĥ"), byte("¬")}) ==
        "\xE2\x82\xAC");  // the whole euro sign
  CHECK(small_tokenizer().decode(Ids{byte("Ĥ"), byte("Ĥ")}) == bad + bad);
  CHECK(small_tokenizer().decode(Ids{byte("a"), 4000000000U, 100000, byte("b")}) == "ab");
}

TEST_CASE("tokens are found by name and by id, and the digest is the file's", "[data]") {
  const Tokenizer& tokenizer = small_tokenizer();
  CHECK(tokenizer.token_to_id("<|end|>") == 0U);
  CHECK(tokenizer.id_to_token(0) == "<|end|>");
  CHECK(tokenizer.token_to_id("Ġ").has_value());
  CHECK_FALSE(tokenizer.token_to_id("no such token").has_value());
  CHECK_FALSE(tokenizer.id_to_token(1000000).has_value());
  CHECK(tokenizer.vocab_size() == 710);
  CHECK(tokenizer.digest() == olmo::sha256_file(kData / "tokenizer_small.json"));
}

TEST_CASE("a tokenizer.json with an unsupported part is refused by the name of the field",
          "[data]") {
  CHECK_THAT(load_error_after([](Json& root) {
               root["normalizer"] = {{"type", "NFKC"}};
             }),
             Contains("`normalizer.type` 'NFKC'"));
  CHECK_THAT(load_error_after([](Json& root) {
               root["pre_tokenizer"] = {{"type", "Metaspace"}};
             }),
             Contains("`pre_tokenizer.type` 'Metaspace'"));
  CHECK_THAT(load_error_after([](Json& root) { root["pre_tokenizer"]["add_prefix_space"] = true; }),
             Contains("`pre_tokenizer.add_prefix_space`"));
  CHECK_THAT(load_error_after([](Json& root) { root["pre_tokenizer"]["use_regex"] = false; }),
             Contains("`pre_tokenizer.use_regex`"));
  CHECK_THAT(load_error_after([](Json& root) { root["decoder"] = nullptr; }),
             Contains("`decoder.type` is missing"));
  CHECK_THAT(load_error_after([](Json& root) { root["truncation"] = Json::object(); }),
             Contains("`truncation`"));
  CHECK_THAT(load_error_after([](Json& root) { root["model"]["type"] = "WordPiece"; }),
             Contains("`model.type` \"WordPiece\""));
  CHECK_THAT(load_error_after([](Json& root) { root["model"]["dropout"] = 0.1; }),
             Contains("`model.dropout`"));
}

TEST_CASE("a split that is not quite cl100k_base's is refused by the name of the field", "[data]") {
  const auto error_after = [](auto change) {
    return load_error(changed("tokenizer_cl100k.json",
                              [&](Json& root) { change(root["pre_tokenizer"]["pretokenizers"]); }));
  };
  const std::string list = "`pre_tokenizer.pretokenizers";
  CHECK_THAT(error_after([](Json& parts) { parts = nullptr; }), Contains(list + "` must be two"));
  CHECK_THAT(error_after([](Json& parts) { parts.push_back(parts[1]); }),
             Contains(list + "` must be two"));
  CHECK_THAT(error_after([](Json& parts) { std::swap(parts[0], parts[1]); }),
             Contains(list + "[0].type` 'ByteLevel'"));
  CHECK_THAT(error_after([](Json& parts) { parts[0]["type"] = "Digits"; }),
             Contains(list + "[0].type` 'Digits'"));
  CHECK_THAT(error_after([](Json& parts) {
               parts[0]["pattern"] = {{"String", " "}};
             }),
             Contains(list + "[0].pattern.Regex` is missing"));
  CHECK_THAT(error_after([](Json& parts) { parts[0]["pattern"]["Regex"] = "\\p{N}{1,3}"; }),
             Contains(list + "[0].pattern.Regex`"));
  CHECK_THAT(error_after([](Json& parts) { parts[0]["behavior"] = "Removed"; }),
             Contains(list + "[0].behavior` \"Removed\""));
  CHECK_THAT(error_after([](Json& parts) { parts[0]["invert"] = true; }),
             Contains(list + "[0].behavior` \"Isolated\""));
  CHECK_THAT(error_after([](Json& parts) { parts[1]["use_regex"] = true; }),
             Contains(list + "[1].use_regex`"));
  CHECK_THAT(error_after([](Json& parts) { parts[1]["add_prefix_space"] = true; }),
             Contains(list + "[1].add_prefix_space`"));
}

TEST_CASE("a damaged tokenizer.json is refused with one sentence", "[data]") {
  const std::string text = olmo::read_file(kData / "tokenizer_small.json");
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, text.size() / 2, text.size() - 1}) {
    CHECK_THAT(load_error(text.substr(0, size)), Contains("not valid JSON"));
  }
  CHECK_THAT(load_error("[]"), Contains("must be an object"));
  CHECK_THAT(load_error("{\"version\":1e999}"), Contains("not valid JSON"));
  CHECK_THAT(load_error("{\"pre_tokenizer\":{\"type\":" + std::string(100000, '[') +
                        std::string(100000, ']') + "}}"),
             Contains("is nested too deep"));
  CHECK_THAT(load_error_after([](Json& root) { root.erase("model"); }),
             Contains("`model` is missing"));
  CHECK_THAT(load_error_after([](Json& root) { root["model"]["vocab"] = 3; }),
             Contains("`model.vocab`"));
  CHECK_THAT(load_error_after([](Json& root) { root["model"]["vocab"]["x y"] = 5; }),
             Contains("gives id 5 to both"));
  CHECK_THAT(load_error_after([](Json& root) { root["model"]["vocab"]["x y"] = 4294967297; }),
             Contains("got 4294967297"));
  CHECK_THAT(load_error_after([](Json& root) { root["model"]["vocab"]["x y"] = -1; }),
             Contains("got -1"));
  CHECK_THAT(load_error_after([](Json& root) { root["model"]["vocab"].erase("a"); }),
             Contains("byte 97"));
  CHECK_THAT(load_error_after([](Json& root) {
               root["model"]["merges"].push_back({"a", "nowhere"});
             }),
             Contains("needs the token \"nowhere\""));
  CHECK_THAT(load_error_after([](Json& root) { root["model"]["merges"].push_back(17); }),
             Contains("must be two tokens, got 17"));
  CHECK_THAT(load_error_after([](Json& root) { root["added_tokens"][3]["id"] = 5; }),
             Contains("must have id"));
  CHECK_THAT(load_error_after([](Json& root) { root["added_tokens"][3].erase("lstrip"); }),
             Contains(": `added_tokens[3].lstrip` is missing"));
  CHECK_THAT(load_error_after([](Json& root) { root["added_tokens"][3]["content"] = ""; }),
             Contains("content"));
  CHECK_THAT(
      load_error_after([](Json& root) { root["added_tokens"].push_back(root["added_tokens"][0]); }),
      Contains("repeats"));
  CHECK_THAT(
      load_error_after([](Json& root) {
        root["added_tokens"][8]["content"] = "\u00C5bo";
        root["added_tokens"][8]["normalized"] = true;
      }),
      Contains("tokenizer.json: `added_tokens`: ids 704 and 706 have the same content after"));
}

TEST_CASE("OLMo's own tokenizers meet the reference values", "[.golden]") {
  const char* folder = std::getenv("OLMO_GOLDEN_DIR");
  if (folder == nullptr) {
    WARN("OLMO_GOLDEN_DIR is not set");
    return;
  }
  const std::filesystem::path golden = folder;
  const std::pair<const char*, const char*> files[] = {
      {"pii_special", "allenai_eleuther-ai-gpt-neox-20b-pii-special.json"},
      {"dolma_v1_5", "allenai_gpt-neox-olmo-dolma-v1_5.json"}};
  for (const auto& [name, file] : files) {
    const Tokenizer tokenizer = Tokenizer::load(golden.parent_path() / "tokenizers" / file);
    check_records(tokenizer, golden / "tokenizer" / (std::string(name) + ".strings.jsonl"));
    for (const auto& record :
         read_lines(golden / "tokenizer" / (std::string(name) + ".docs.jsonl"))) {
      const auto ids = record["ids"].get<Ids>();
      const std::string text = tokenizer.decode(ids);
      CHECK(olmo::sha256(text).hex() == record["text_sha256"].get<std::string>());
      CHECK(encode(tokenizer, text) == ids);
    }
    const auto info = nlohmann::json::parse(
        olmo::read_file(golden / "tokenizer" / (std::string(name) + ".info.json")));
    CHECK(tokenizer.vocab_size() == info["vocab_size_with_added"].get<std::size_t>());
    for (const auto& single : info["single_id_decodes"]) {
      CHECK(tokenizer.decode(Ids{single["id"].get<std::uint32_t>()}) ==
            single["decoded"].get<std::string>());
    }
  }
}
