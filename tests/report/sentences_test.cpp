#include "report/sentences.h"

#include "support/catch.h"

using namespace olmo::report;

namespace {

Claim equivalent(const Margin& margin) {
  Claim claim{.verdict = Verdict::kEquivalent};
  claim.tests.push_back({.name = "macro average", .method = "paired instances", .unit = "pp"});
  claim.tests[0].margin = margin;
  claim.deciding = 0;
  return claim;
}

}  // namespace

TEST_CASE("a sentence says where its margin is from", "[report]") {
  const auto says = [](const Margin& margin, const char* part) {
    return sentence_of(equivalent(margin), {}).find(part) != std::string::npos;
  };
  CHECK(says({0.5, MarginSource::kDeclared, "ada", "2026-01-02T03:04:05Z", ""},
             "±0.5 pp (declared by ada at 2026-01-02T03:04:05Z)"));
  CHECK(says({0.5, MarginSource::kDefault, "", "", ""}, "±0.5 pp (default)"));
  CHECK(says({0.7, MarginSource::kRepeats, "", "", ""}, "±0.7 pp (from repeats)"));
}

TEST_CASE("a claim with a published noise carries its source", "[report]") {
  Claim claim = equivalent({});
  claim.tests[0].noise = "Example et al. 2025, table 3";
  CHECK(sentence_of(claim, {}).find("with noise from Example et al. 2025, table 3") !=
        std::string::npos);
}

TEST_CASE("a share of instances that differ is no difference of B and A", "[report]") {
  Claim claim = equivalent({});
  claim.verdict = Verdict::kDifferent;
  claim.tests[0].name = "share of instances";
  claim.tests[0].unit = "%";
  claim.tests[0].estimate = 5.25;
  CHECK(sentence_of(claim, {}).find("share of instances is 5.25 % (95 % interval") !=
        std::string::npos);
}
