#include "report/sentences.h"

#include <cmath>
#include <map>

#include "report/plan.h"
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

TEST_CASE("a difference is beyond its margin where its interval is", "[report]") {
  Claim claim = equivalent({.value = 0.002});
  claim.verdict = Verdict::kDifferent;
  claim.tests[0].estimate = 0.0025;
  claim.tests[0].interval95 = {0.0003, 0.0047};
  const std::string reaches = sentence_of(claim, {});
  CHECK(reaches.find("by more than") == std::string::npos);
  CHECK(
      reaches.find("the estimate is beyond the margin ±0.002 pp (default), the interval is not") !=
      std::string::npos);
  for (const double sign : {-1, 1}) {
    claim.tests[0].interval95 = {sign > 0 ? 0.0021 : -0.0029, sign > 0 ? 0.0029 : -0.0021};
    const std::string beyond = sentence_of(claim, {});
    CHECK(beyond.find("These two models differ by more than the margin ±0.002 pp") == 0);
    CHECK(beyond.find("the interval is not") == std::string::npos);
  }
}

TEST_CASE("models of which one was trained further are compared as far as both go", "[report]") {
  Claim claim = equivalent({.value = 0.002});
  const Conditions conditions{.extent = "up to step 600 (A goes on to step 1000)"};
  claim.tests[0].endpoint = Endpoint::kMacro;
  CHECK(sentence_of(claim, conditions).find("These two models are equivalent") == 0);
  claim.tests[0].endpoint = Endpoint::kLoss;
  CHECK(sentence_of(claim, conditions)
            .find("These two models, up to step 600 (A goes on to step 1000), are equivalent") ==
        0);
}

TEST_CASE("a difference that is seen and not significant is not said to be none", "[report]") {
  Claim claim = equivalent({.value = 0.002});
  claim.verdict = Verdict::kConsistent;
  claim.tests[0].certified = true;
  CHECK(sentence_of(claim, {}).find("show no difference beyond chance and rounding:") !=
        std::string::npos);
  claim.tests[0].equal_bits = true;
  CHECK(sentence_of(claim, {}).find("show no difference:") != std::string::npos);
}

TEST_CASE("more decimals are asked for where they hide the difference, else no longer stretch",
          "[report]") {
  Claim claim = equivalent({.value = 0.002});
  claim.verdict = Verdict::kInconclusive;
  claim.tests[0].hidden = 0.05;
  CHECK(what_makes_stronger(claim, {}).find("Logs with more decimals") == 0);
  claim.tests.clear();
  claim.deciding.reset();
  CHECK(what_makes_stronger(claim, {}).find("Evaluate a checkpoint of each side") == 0);
}

TEST_CASE("how often repeats would certify is told as report plan reckons it", "[report]") {
  PlanFacts facts;
  facts.loss_deviation = 0.003;
  const Claim nothing_tested{.scope = Scope::kSetups};
  const std::string sentence = what_makes_stronger(nothing_tested, {});
  const std::map<std::int64_t, std::string> words = {{6, "six in "}, {8, "eight in "}};
  const Plan plan = make_plan(facts);
  for (const auto& row : plan.tables.at(0).rows) {
    const auto word = words.find(row.count);
    if (word == words.end()) continue;
    CHECK(sentence.find(word->second + std::to_string(std::lround(100 * row.power)) + " %") !=
          std::string::npos);
  }
}
