#include "report/evaluations/perplexity_comparison.h"

#include <cmath>

#include "report/claims/claim.h"
#include "report/evaluation_fixture.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::EvaluationFile;
using olmo::test::mentions;

namespace {

double usual(std::int64_t index) { return 100 + static_cast<double>(index * 7 % 13); }

template <typename Nll>
EvaluationData suite(const Nll& nll, std::int64_t bytes = 100) {
  EvaluationFile file;
  file.add_suite("paloma", 30, nll, bytes);
  return file.read();
}

}  // namespace

TEST_CASE("documents with equal bits are certified", "[report]") {
  const auto data = suite(usual);
  const auto result = compare_perplexity(data, data, kBpbMargin);
  CHECK(result.invalid.empty());
  CHECK(result.mismatched.empty());
  REQUIRE(result.sources.size() == 3);
  CHECK(result.sources[0].source == "c4");
  CHECK(result.sources[1].source == "wiki");
  CHECK(result.sources[2].source.empty());
  CHECK(result.sources[2].documents == 60);
  for (const SourceComparison& source : result.sources) {
    CHECK(source.unit == "bits per byte");
    CHECK(source.bpb_a == source.bpb_b);
    CHECK(source.equal_bits == source.documents);
    CHECK(source.p == 1);
    CHECK(source.holm_p == 1);
    REQUIRE(source.interval95);
    CHECK(source.interval95->low == 0);
    CHECK(source.interval95->high == 0);
    REQUIRE(source.equivalence);
    CHECK(source.equivalence->certified);
  }
}

TEST_CASE("bits per byte are sums over sums, and a shift is found", "[report]") {
  const auto a = suite(usual);
  const auto b = suite([](std::int64_t i) {
    return i < 30 ? usual(i) + 1 + 0.1 * static_cast<double>(i % 3) : usual(i);
  });
  const auto result = compare_perplexity(a, b, kBpbMargin);
  REQUIRE(result.sources.size() == 3);
  double nll = 0;
  for (std::int64_t i = 0; i < 30; ++i) nll += usual(i);
  const SourceComparison& c4 = result.sources[0];
  CHECK(c4.bytes == 3000);
  CHECK(c4.tokens == 750);
  CHECK(c4.bpb_a == Approx(nll / 3000 / std::log(2.0)));
  CHECK(c4.difference == Approx(1.1 / 100 / std::log(2.0)));
  CHECK(c4.p < 0.001);
  CHECK(c4.holm_p == Approx(2 * c4.p));
  CHECK(c4.interval95->low > 0);
  CHECK_FALSE(c4.equivalence->certified);
  CHECK(c4.equal_bits == 0);
  CHECK(result.sources[1].equivalence->certified);
  const SourceComparison& macro = result.sources[2];
  CHECK(macro.difference == Approx(c4.difference / 2));
  CHECK(macro.holm_p == macro.p);
  CHECK(macro.p < 0.001);
}

TEST_CASE("a shift within the rounding of sums is no difference", "[report]") {
  const auto shifted = [](double by) {
    return suite([&](std::int64_t i) { return usual(i) * (1 + by); });
  };
  const auto a = shifted(0);
  for (const double sign : {-1.0, 1.0}) {
    const auto rounded = compare_perplexity(a, shifted(sign * 1e-7), kBpbMargin);
    for (const SourceComparison& source : rounded.sources) {
      CHECK(source.p == 1);
      CHECK(source.equal_bits == 0);
      CHECK(source.equivalence->certified);
    }
    CHECK(compare_perplexity(a, shifted(sign * 1e-4), kBpbMargin).sources[0].p < 0.01);
  }
}

TEST_CASE("without bytes the unit is a token", "[report]") {
  const auto data = suite(usual, 0);
  const auto result = compare_perplexity(data, data, kBpbMargin);
  REQUIRE(result.sources.size() == 3);
  double nll = 0;
  for (std::int64_t i = 0; i < 30; ++i) nll += usual(i);
  CHECK(result.sources[0].unit == "bits per token");
  CHECK(result.sources[0].bpb_a == Approx(nll / 750 / std::log(2.0)));
}

TEST_CASE("missing documents and unequal counts are invalid", "[report]") {
  const auto a = suite(usual);
  auto b = a;
  auto& documents = b.suites[0].documents;
  SECTION("suite") {
    b.suites.clear();
    const auto result = compare_perplexity(a, b, kBpbMargin);
    CHECK(result.invalid == std::vector<std::string>{"paloma: only A has it"});
    CHECK(result.sources.empty());
  }
  SECTION("document") {
    documents.pop_back();
    CHECK(
        mentions(compare_perplexity(a, b, kBpbMargin).invalid, "paloma: 1 document is only in A"));
  }
  SECTION("counts") {
    ++documents[0].tokens;
    ++documents[1].bytes;
    const auto result = compare_perplexity(a, b, kBpbMargin);
    CHECK(result.invalid ==
          std::vector<std::string>{"paloma: 2 documents have other counts of tokens or bytes"});
    CHECK(result.sources[0].documents == 28);
  }
  SECTION("lengths") {
    for (auto& document : documents) document.bytes = document.tokens = 0;
    CHECK(mentions(compare_perplexity(b, b, kBpbMargin).invalid,
                   "no document has a token or a byte"));
  }
}

TEST_CASE("other texts and tokenizers are mismatched", "[report]") {
  const auto a = suite(usual);
  auto b = a;
  b.suites[0].documents[0].text = 1;
  b.suites[0].documents[1].text = 0;  // not known
  b.suites[0].documents[2].source = "other";
  CHECK(compare_perplexity(a, b, kBpbMargin).mismatched ==
        std::vector<std::string>{"paloma: 2 documents have other texts or sources"});

  auto retokenized = a;
  retokenized.tokenizer_digest = "another";
  for (auto& document : retokenized.suites[0].documents) ++document.tokens;
  const auto result = compare_perplexity(a, retokenized, kBpbMargin);
  CHECK(result.invalid.empty());
  CHECK(result.mismatched ==
        std::vector<std::string>{"the tokenizers differ, " + a.tokenizer_digest + " and another"});
}

TEST_CASE("texts that were cut to other maximum lengths are mismatched", "[report]") {
  auto a = suite(usual);
  auto b = a;
  a.suites[0].asked.max_length = 2048;
  b.suites[0].asked.max_length = 1024;
  CHECK(compare_perplexity(a, b, kBpbMargin).mismatched.empty());  // none is as long
  a.suites[0].documents[0].tokens = b.suites[0].documents[0].tokens = 1500;
  b.suites[0].documents[0].tokens -= 1;
  const auto result = compare_perplexity(a, b, kBpbMargin);
  CHECK(result.invalid.empty());
  CHECK(result.mismatched ==
        std::vector<std::string>{
            "paloma: the texts were cut to other maximum lengths, 2048 and 1024 tokens"});
  b.suites[0].asked.max_length.reset();  // not told
  CHECK(compare_perplexity(a, b, kBpbMargin).mismatched.empty());
}

TEST_CASE("texts that begin with other tokens are mismatched", "[report]") {
  auto a = suite(usual);
  auto b = a;
  a.suites[0].asked.first_token = 50279;
  CHECK(compare_perplexity(a, b, kBpbMargin).mismatched.empty());  // B does not tell
  b.suites[0].asked.first_token = 0;
  CHECK(compare_perplexity(a, b, kBpbMargin).mismatched ==
        std::vector<std::string>{"paloma: another token stands before texts, 50279 and 0"});
}

TEST_CASE("a single document gets no interval", "[report]") {
  EvaluationFile file;
  file.add_suite("paloma", 1, usual);
  const auto data = file.read();
  const auto result = compare_perplexity(data, data, kBpbMargin);
  REQUIRE(result.sources.size() == 3);
  CHECK_FALSE(result.sources[0].equivalence);
  CHECK(result.sources[0].p == 1);
  CHECK_FALSE(result.sources[2].interval95);
}

TEST_CASE("a task whose metric is a cost is compared by its right answers", "[report]") {
  const auto write = [](EvaluationFile& file, double more) {
    file.begin("piqa_bpb", "bpb");
    for (std::int64_t i = 0; i < 40; ++i)
      file.db().record_options(
          EvaluationFile::ranked("piqa_bpb", i, {-usual(i) - more * static_cast<double>(i % 2)}));
    file.db().end_task("piqa_bpb", "finished");
    return file.read();
  };
  EvaluationFile file_a, file_b;
  const auto a = write(file_a, 0), b = write(file_b, 1);
  const auto result = compare_perplexity(a, b, kBpbMargin);
  REQUIRE(result.sources.size() == 1);
  const SourceComparison& source = result.sources[0];
  CHECK(source.suite == "piqa_bpb");
  CHECK(source.source == kAnswers);
  CHECK(source.unit == "bits per byte");
  CHECK(source.documents == 40);
  CHECK(source.bytes == 400);
  CHECK(source.equal_bits == 20);
  CHECK(source.difference == Approx(0.05 / std::log(2.0)));
  CHECK(source.p < 0.001);

  auto unknown = a;
  for (auto& instance : unknown.tasks[0].instances) instance.answer_bytes = 0;
  CHECK(compare_perplexity(unknown, unknown, kBpbMargin).sources[0].unit == "bits per token");
  for (auto& instance : unknown.tasks[0].instances) instance.answer_tokens = 0;
  CHECK(mentions(compare_perplexity(unknown, unknown, kBpbMargin).invalid, "unequal or unknown"));
}
