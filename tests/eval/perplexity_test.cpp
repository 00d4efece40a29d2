#include "eval/perplexity.h"

#include <cmath>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "data/scratch.h"
#include "eval/document_reader.h"
#include "support/catch.h"

using namespace olmo::eval;
using olmo::DocumentRow;
using olmo::ErrorKind;
using olmo::Json;
using olmo::TokenForest;
using olmo::TokenScore;
using olmo::data::Tokenizer;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

using TokenIds = std::vector<std::uint32_t>;
constexpr std::uint32_t kEos = 3;

const Tokenizer& tokenizer() {
  static const Tokenizer kTokenizer = Tokenizer::load(OLMO_TEST_DATA "/data/tokenizer_small.json");
  return kTokenizer;
}

/// A path of tokens as one number.
std::uint64_t extend(std::uint64_t path, std::uint64_t id) {
  return (path ^ (id + 1)) * 0x9E3779B97F4A7C15ULL;
}

/// A score that differs with every token before the label, and their number.
float score_after(std::uint64_t path, std::uint64_t label) {
  return -static_cast<float>(extend(path, label) >> 40) / (1 << 20);
}

void path_model(const TokenForest& forest, std::span<TokenScore> scores) {
  std::vector<std::uint64_t> paths(forest.ids.size());
  for (const auto& segment : forest.segments) {
    std::uint64_t path = 0;
    if (segment.parent >= 0) {
      const auto& parent = forest.segments[static_cast<std::size_t>(segment.parent)];
      path = paths[static_cast<std::size_t>(parent.begin + parent.length - 1)];
    }
    for (std::int64_t row = segment.begin; row < segment.begin + segment.length; ++row) {
      path = extend(path, static_cast<std::uint64_t>(forest.ids[static_cast<std::size_t>(row)]));
      paths[static_cast<std::size_t>(row)] = path;
    }
  }
  for (std::size_t i = 0; i < scores.size(); ++i)
    scores[i].log_prob = score_after(paths[static_cast<std::size_t>(forest.targets[i].row)],
                                     static_cast<std::uint64_t>(forest.targets[i].label));
}

/// What path_model gives for the last `scored` of `tokens`.
double nll_of(std::span<const std::uint32_t> tokens, std::size_t scored) {
  std::uint64_t path = 0;
  double sum = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i + scored >= tokens.size()) sum -= static_cast<double>(score_after(path, tokens[i]));
    path = extend(path, tokens[i]);
  }
  return sum;
}

PerplexityOptions options_of(std::int64_t max_length) {
  PerplexityOptions options;
  options.max_length = max_length;
  options.eos_token_id = kEos;
  return options;
}

/// Rows by index.
std::map<std::int64_t, DocumentRow> evaluate(const PerplexitySuite& suite,
                                             const PerplexityOptions& options,
                                             const olmo::ScoreTokens& model = path_model) {
  std::map<std::int64_t, DocumentRow> rows;
  PerplexityCallbacks callbacks;
  callbacks.on_document = [&](const DocumentRow& row) {
    CHECK(rows.emplace(row.index, row).second);
  };
  evaluate_perplexity(suite, &tokenizer(), model, options, callbacks);
  return rows;
}

void check_equal(const DocumentRow& a, const DocumentRow& b) {
  CHECK(a.document == b.document);
  CHECK(a.source == b.source);
  CHECK(a.subdomain == b.subdomain);
  CHECK(a.tokens == b.tokens);
  CHECK(a.windows == b.windows);
  CHECK(a.text_hash == b.text_hash);
  CHECK(a.nll == b.nll);
}

TokenIds encode(const std::string& text) {
  TokenIds ids;
  tokenizer().encode(text, ids);
  return ids;
}

/// A suite of two sources with three documents each; the last one is empty.
struct Texts {
  ScratchFolder folder;
  std::map<std::string, std::vector<std::string>> texts;
  PerplexitySuite suite;

  explicit Texts(DocumentConvention convention) {
    for (const std::string source : {"first", "second"}) {
      texts[source] = {"The " + source + " of some documents, with a few words in it.", "déjà vu ",
                       source == "first" ? "a rather longer one: 1 2 3 4 5 6 7 8 9 10 11" : ""};
      std::string lines;
      for (const auto& text : texts[source]) lines += Json{{"text", text}}.dump() + "\n";
      std::filesystem::create_directories(folder / ("s/" + source + "/val"));
      folder.write("s/" + source + "/val/val_00000.jsonl", lines);
    }
    suite = open_perplexity_suite("s", folder / "s", convention);
  }
};

}  // namespace

TEST_CASE("rolling windows are lm-eval's and Catwalk's", "[eval]") {
  const Json golden = olmo::read_json_file(OLMO_TEST_DATA "/eval/perplexity.json");
  for (const Json& expected : golden.at("windows")) {
    TokenIds ids(expected.at("ids").get<std::size_t>());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = 100 + static_cast<std::uint32_t>(i);
    Json found = Json::array();
    for (const auto& window : rolling_windows(ids, golden.at("eos"), expected.at("max_length")))
      found.push_back({window.tokens, window.scored});
    INFO(ids.size() << " ids, windows of " << expected.at("max_length"));
    CHECK(found == expected.at("windows"));
  }
}

TEST_CASE("catwalk: every token of every document is scored once, in its window", "[eval]") {
  const Texts texts(DocumentConvention::kCatwalk);
  for (const std::int64_t max_length : {1, 5, 2048}) {
    const auto rows = evaluate(texts.suite, options_of(max_length));
    REQUIRE(rows.size() == 6);
    std::int64_t index = 0;
    for (const auto& [source, documents] : texts.texts) {
      for (const std::string& text : documents) {
        const DocumentRow& row = rows.at(index++);
        const TokenIds ids = encode(text);
        double nll = 0;
        std::int64_t windows = 0;
        for (const auto& window : rolling_windows(ids, kEos, max_length)) {
          nll += nll_of(window.tokens, static_cast<std::size_t>(window.scored));
          ++windows;
        }
        CHECK(row.suite == "s");
        CHECK(row.source == source);
        CHECK(row.nll == nll);
        CHECK(row.windows == windows);
        CHECK(row.tokens == static_cast<std::int64_t>(ids.size()));
        CHECK(row.bytes == static_cast<std::int64_t>(text.size()));
        CHECK(row.words == count_text(text).words);
        CHECK(row.text_hash == olmo::sha256(text).hex());
      }
    }
    CHECK(rows.at(5).windows == 0);
    CHECK(rows.at(5).words == 1);
    CHECK(rows.at(1).document == "val_00000.jsonl#2");
  }
}

TEST_CASE("olmo: a source's documents with eos after each, cut; the tail is dropped", "[eval]") {
  const Texts texts(DocumentConvention::kOlmo);
  constexpr std::size_t kLength = 8;
  const auto rows = evaluate(texts.suite, options_of(kLength));
  std::int64_t index = 0;
  for (const auto& [source, documents] : texts.texts) {
    TokenIds stream;
    for (const std::string& text : documents) {
      const TokenIds ids = encode(text);
      stream.insert(stream.end(), ids.begin(), ids.end());
      stream.push_back(kEos);
    }
    REQUIRE(stream.size() > kLength);
    for (std::size_t i = 0; (i + 1) * kLength <= stream.size(); ++i) {
      const auto ids = std::span(stream).subspan(i * kLength, kLength);
      const DocumentRow& row = rows.at(index++);
      CHECK(row.source == source);
      CHECK(row.document == "instance " + std::to_string(i));
      CHECK(row.tokens == kLength - 1);
      CHECK(row.bytes == 0);
      CHECK(row.text_hash == olmo::sha256(std::as_bytes(ids)).hex());
      CHECK(row.nll == nll_of(ids, kLength - 1));
    }
  }
  CHECK(rows.size() == static_cast<std::size_t>(index));
}

TEST_CASE("olmo: token files are cut each by itself, in the dtype of sidecar or suite", "[eval]") {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder / "t/a/val");
  std::filesystem::create_directories(folder / "t/b/val");
  folder.write_ids<std::uint16_t>("t/a/val/0.npy", {1, 2, 3, 4, 5, 6, 7, 8, 9});
  folder.write_ids<std::uint16_t>("t/a/val/1.npy", {11, 12, 13, 14});
  folder.write_ids<std::uint32_t>("t/b/val/0.npy", {21, 22, 23, 24});
  folder.write("t/b/val/0.npy.json", R"({"dtype": "uint32", "tokens": 4})");
  const auto suite = open_perplexity_suite("t", folder / "t", {});
  const auto rows = evaluate(suite, options_of(4));
  REQUIRE(rows.size() == 4);
  CHECK(rows.at(1).nll == nll_of(TokenIds{5, 6, 7, 8}, 3));
  CHECK(rows.at(2).nll == nll_of(TokenIds{11, 12, 13, 14}, 3));
  CHECK(rows.at(2).document == "instance 2");
  CHECK(rows.at(3).nll == nll_of(TokenIds{21, 22, 23, 24}, 3));
  CHECK(rows.at(3).source == "b");

  PerplexityOptions options = options_of(4);
  options.vocab_size = 24;
  const auto error = thrown_by([&] { evaluate(suite, options); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::kInput);
  CHECK(error->says("token 3 has id 24, but the model's vocabulary has 24 ids"));
  options.limit = 1;
  options.vocab_size = 0;
  CHECK(evaluate(suite, options).size() == 2);
}

TEST_CASE("rows do not depend on threads, sharing, limits, nor on what was done before", "[eval]") {
  for (const auto convention : {DocumentConvention::kCatwalk, DocumentConvention::kOlmo}) {
    const Texts texts(convention);
    const auto expected = evaluate(texts.suite, options_of(6));
    PerplexityOptions options = options_of(6);
    options.threads = 3;
    options.queue = {.forest_rows = 7, .share_prefixes = false};
    const auto again = evaluate(texts.suite, options);
    REQUIRE(again.size() == expected.size());
    for (const auto& [index, row] : again) check_equal(row, expected.at(index));

    options.limit = 2;
    const auto limited = evaluate(texts.suite, options);
    REQUIRE(limited.size() == 4);
    check_equal(limited.at(1), expected.at(1));

    std::map<std::int64_t, DocumentRow> rest;
    PerplexityProgress last;
    PerplexityCallbacks callbacks;
    callbacks.on_document = [&](const DocumentRow& row) { rest[row.index] = row; };
    callbacks.is_done = [](std::int64_t index) { return index % 2 == 0; };
    callbacks.on_progress = [&](const PerplexityProgress& progress) {
      CHECK(progress.fraction >= last.fraction);
      last = progress;
    };
    evaluate_perplexity(texts.suite, &tokenizer(), path_model, options_of(6), callbacks);
    CHECK(rest.size() == expected.size() / 2);
    for (const auto& [index, row] : rest) check_equal(row, expected.at(index));
    CHECK(last.fraction == 1.0);
    CHECK(last.documents == static_cast<std::int64_t>(expected.size()));
  }
}

TEST_CASE("suites larger than what is held at a time are cut like smaller ones", "[eval]") {
  const ScratchFolder folder;
  std::string lines;
  const std::string words = std::string(30, 'a') + " b";
  std::string text;
  for (int i = 0; i < 10000; ++i) text += words;
  for (int i = 0; i < 16; ++i) lines += Json{{"text", text + std::to_string(i)}}.dump() + "\n";
  folder.write("large.jsonl", lines);  // 5 MB: more than is held at a time
  std::uint64_t tokens = 0;
  for (int i = 0; i < 16; ++i) tokens += encode(text + std::to_string(i)).size() + 1;
  const auto uniform = [](const TokenForest&, std::span<TokenScore> scores) {
    for (TokenScore& score : scores) score.log_prob = -0.5F;
  };
  auto suite = open_perplexity_suite("l", folder / "large.jsonl", DocumentConvention::kOlmo);
  constexpr std::int64_t kLength = 100'003;
  const auto rows = evaluate(suite, options_of(kLength), uniform);
  CHECK(rows.size() == tokens / kLength);
  for (const auto& [index, row] : rows) CHECK(row.nll == 0.5 * (kLength - 1));
  suite.convention = DocumentConvention::kCatwalk;
  CHECK(evaluate(suite, options_of(2048), uniform).size() == 16);
}

TEST_CASE("a uniform model has the vocabulary's logarithm as its loss", "[eval]") {
  const Texts texts(DocumentConvention::kCatwalk);
  const auto model = [](const TokenForest&, std::span<TokenScore> scores) {
    for (TokenScore& score : scores) score.log_prob = static_cast<float>(-std::log(50304.0));
  };
  for (const auto& [index, row] : evaluate(texts.suite, options_of(9), model))
    CHECK(row.nll == Approx(static_cast<double>(row.tokens) * std::log(50304.0)).epsilon(1e-7));
}

TEST_CASE("a score that is not a number stops the suite and names the document", "[eval]") {
  const Texts texts(DocumentConvention::kCatwalk);
  const std::uint32_t bad = encode(texts.texts.at("second")[1]).back();
  std::int64_t finished = 0;
  PerplexityCallbacks callbacks;
  callbacks.on_document = [&](const DocumentRow& row) {
    CHECK(std::isfinite(row.nll));
    ++finished;
  };
  const auto model = [&](const TokenForest& forest, std::span<TokenScore> scores) {
    path_model(forest, scores);
    const auto& targets = forest.targets;
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (targets[i].label == bad &&
          targets[i].row + 1 == static_cast<std::int64_t>(forest.ids.size()))
        scores[i].log_prob = std::numeric_limits<float>::quiet_NaN();
  };
  const auto error = thrown_by(
      [&] { evaluate_perplexity(texts.suite, &tokenizer(), model, options_of(100), callbacks); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::kDiverged);
  CHECK(error->says("suite s: the log-likelihood of val_00000.jsonl#"));
  CHECK(error->says("is not a finite number"));
  CHECK(finished < 6);
}

TEST_CASE("windows without a token to predict are refused", "[eval]") {
  const Texts olmo_texts(DocumentConvention::kOlmo);
  const auto error = thrown_by([&] { evaluate(olmo_texts.suite, options_of(1)); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::kUsage);
  const Texts catwalk(DocumentConvention::kCatwalk);
  CHECK(thrown_by([&] { evaluate(catwalk.suite, options_of(0)); }));
}
