#include "report/decide.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "report/evidence.h"
#include "report/sentences.h"
#include "report/stats/distributions.h"
#include "report/training/ending.h"

namespace olmo::report {
namespace {

/// Tasks by their number of instances, which is known before any answer is.
void put_in_order(std::vector<Test>& tests) {
  std::stable_sort(tests.begin(), tests.end(), [](const Test& x, const Test& y) {
    const auto key = [](const Test& test) {
      return std::tuple(test.endpoint, test.endpoint == Endpoint::kTask ? -test.n : 0);
    };
    return key(x) < key(y);
  });
}

/// Losses and the macro average decide, scores as well; where there are none, what there is. With
/// equal weights the choices follow from the scores: without a flip the macro average adds nothing.
void mark_primary(std::vector<Test>& tests) {
  const auto of = [&](Endpoint endpoint) {
    return std::count_if(tests.begin(), tests.end(),
                         [&](const Test& test) { return test.endpoint == endpoint; });
  };
  const bool single = of(Endpoint::kTask) == 1 && of(Endpoint::kMacro) == 0;
  const bool headed = of(Endpoint::kScores) + of(Endpoint::kLoss) + of(Endpoint::kMacro) > 0;
  for (Test& test : tests) {
    const bool implied = test.equal_bits && of(Endpoint::kScores) > 0 &&
                         (test.endpoint == Endpoint::kMacro || test.endpoint == Endpoint::kTask);
    const bool heads = test.endpoint < Endpoint::kBpb ||
                       (test.endpoint == Endpoint::kTask && single) ||
                       (test.endpoint == Endpoint::kBpb && !headed && !single);
    test.primary = heads && !implied && !test.difference_only;
  }
}

/// Of a test without a standard error from the width of its interval, as if it were normal.
std::optional<double> power_of(const Test& test) {
  if (test.too_few || test.difference_only) return std::nullopt;
  const double half = (test.interval90.high - test.interval90.low) / 2 - test.hidden;
  constexpr double kManyDegrees = 1e6;
  const double room = test.margin.value - test.hidden;
  if (room <= 0) return 0;
  return certification_power(test.standard_error.value_or(half / normal_quantile(1 - kAlpha)),
                             test.degrees_of_freedom.value_or(kManyDegrees), room);
}

void test_for_equivalence(std::vector<Test>& tests, const Margins& margins) {
  bool open = true;
  for (Test& test : tests) {
    if (test.endpoint != Endpoint::kScores) test.margin = margins.of(test.endpoint);
    test.excludes = std::max(std::abs(test.interval90.low), std::abs(test.interval90.high));
    test.within_margin = !test.too_few && test.interval90.inside(test.margin.value);
    test.power = power_of(test);
    if (test.difference_only) continue;
    test.certified = open && test.within_margin;
    open = open && (test.within_margin || !test.primary);
    if (test.endpoint >= Endpoint::kBpb) open = open && test.within_margin;
  }
}

void test_for_difference(std::vector<Test>& tests) {
  std::vector<Test*> family;
  std::vector<double> p;
  for (Test& test : tests) {
    if (!test.p || test.too_few) continue;
    family.push_back(&test);
    p.push_back(*test.p);
  }
  if (p.empty()) return;
  const auto adjusted = holm_adjusted(p);
  for (std::size_t i = 0; i < family.size(); ++i) {
    family[i]->holm_p = adjusted[i];
    family[i]->different = adjusted[i] <= kAlpha;
  }
}

bool beyond(const Test& test) {
  return test.different && std::abs(test.estimate) > test.margin.value;
}

template <typename Which>
std::optional<std::size_t> first(const std::vector<Test>& tests, const Which& which) {
  const auto found = std::find_if(tests.begin(), tests.end(), which);
  if (found == tests.end()) return std::nullopt;
  return static_cast<std::size_t>(found - tests.begin());
}

/// Of the primary tests the one that says least: it excludes only the largest share of its margin.
std::optional<std::size_t> weakest(const std::vector<Test>& tests) {
  std::optional<std::size_t> found;
  double largest = -1;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    const double share = tests[i].excludes / tests[i].margin.value;
    if (!tests[i].primary || share <= largest) continue;
    largest = share;
    found = i;
  }
  return found;
}

/// Verdict and deciding test.
void conclude(Claim& claim, const Conditions& conditions) {
  const auto& tests = claim.tests;
  const auto settle = [&](Verdict verdict, std::optional<std::size_t> deciding) {
    claim.verdict = verdict;
    claim.deciding = deciding;
  };
  if (const auto found = first(tests, beyond)) return settle(Verdict::kDifferent, found);
  const auto open = first(tests, [](const Test& t) { return t.primary && !t.certified; });
  if (open) {
    const bool nothing = std::all_of(tests.begin(), tests.end(), [](const Test& test) {
      return !test.primary || test.certified || test.equal_bits;
    });
    return settle(nothing ? Verdict::kConsistent : Verdict::kInconclusive, open);
  }
  const auto unbounded =
      first(tests, [](const Test& test) { return test.different && !test.within_margin; });
  if (unbounded) return settle(Verdict::kInconclusive, unbounded);
  if (const auto found = first(tests, [](const Test& test) { return test.different; }))
    return settle(Verdict::kDifferentNegligible, found);
  const bool capped = !conditions.caps.empty() || !conditions.untested.empty();
  settle(capped ? Verdict::kConsistent : Verdict::kEquivalent, weakest(tests));
}

/// How much a claim says: nothing, that nothing differs, or that a question is decided.
int strength(const Claim& claim) {
  if (claim.verdict == Verdict::kInconclusive) return 0;
  return claim.verdict == Verdict::kConsistent ? 1 : 2;
}

void settle(ParityReport& report, Verdict verdict, const std::string& reason) {
  report.verdict = verdict;
  report.reason = reason + (reason.back() == '.' ? "" : ".");
}

/// True if data or settings decide before any statistics.
bool decided_by_records(ParityReport& report) {
  std::vector<std::string> unlike;
  for (const auto& mismatch : report.gate.mismatches) {
    if (mismatch.mismatch != MismatchClass::kFatal) continue;
    const std::string values =
        mismatch.a.empty() ? "" : " (" + mismatch.a + " and " + mismatch.b + ")";
    unlike.push_back(mismatch.what + values + ": " + mismatch.reason);
  }
  const auto add = [&](const std::vector<std::string>& invalid,
                       const std::vector<std::string>& mismatched) {
    report.damage.insert(report.damage.end(), invalid.begin(), invalid.end());
    unlike.insert(unlike.end(), mismatched.begin(), mismatched.end());
  };
  if (report.tasks) add(report.tasks->invalid, report.tasks->mismatched);
  if (report.perplexity) add(report.perplexity->invalid, report.perplexity->mismatched);
  if (!report.damage.empty()) {
    settle(report, Verdict::kInvalidData, report.damage.front());
    return true;
  }
  if (!unlike.empty()) {
    settle(report, Verdict::kNotComparable, unlike.front());
    return true;
  }
  return false;
}

}  // namespace

Claim judge(Scope scope, std::vector<Test> tests, const Conditions& conditions) {
  Claim claim{.scope = scope, .tests = std::move(tests)};
  put_in_order(claim.tests);
  mark_primary(claim.tests);
  test_for_equivalence(claim.tests, conditions.margins);
  test_for_difference(claim.tests);
  if (!claim.tests.empty()) conclude(claim, conditions);
  claim.sentence = sentence_of(claim, conditions) + ".";
  claim.stronger = what_makes_stronger(claim, conditions);
  return claim;
}

const Claim* strongest(const std::vector<Claim>& claims) {
  const Claim* best = nullptr;
  bool setups_tested = false;
  for (const Claim& claim : claims)
    setups_tested |= claim.scope == Scope::kSetups && !claim.tests.empty();
  for (const Claim& claim : claims) {
    const bool yields =
        claim.scope == Scope::kModels && setups_tested && claim.verdict == Verdict::kDifferent;
    if (yields) continue;
    const auto key = [](const Claim& one) {
      return std::tuple(strength(one), !one.tests.empty(), one.scope);
    };
    if (!best || key(claim) > key(*best)) best = &claim;
  }
  return best;
}

void decide(ParityReport& report) {
  if (decided_by_records(report)) return;
  add_caveats(report);
  if (const auto sentence = diverged_alone(report.a, report.b)) {
    report.claim = to_string(Scope::kModels);
    return settle(report, Verdict::kDifferent, *sentence);
  }
  const Conditions conditions = conditions_of(report);
  report.claims = {judge(Scope::kModels, tests_of_models(report), conditions)};
  if (report.kind != Kind::kCheckpoint) {
    Conditions of_setups = conditions;
    std::vector<Test> tests = report.noise.tests;
    const auto& caps = report.noise.caps;
    of_setups.caps.insert(of_setups.caps.end(), caps.begin(), caps.end());
    if (!tests.empty()) of_setups.untested = primary_missing(report.claims[0].tests, tests);
    report.claims.push_back(judge(Scope::kSetups, std::move(tests), of_setups));
  }
  for (const Claim& claim : report.claims)
    for (const Test& test : claim.tests) report.alpha.difference_tests += test.holm_p.has_value();
  if (const auto sentence = identical_sentence(report)) {
    report.claim = "identity";
    Claim& models = report.claims[0];
    models.verdict = Verdict::kIdentical;
    models.deciding.reset();  // the bits do, and no test
    models.sentence = *sentence + ".";
    models.stronger = what_makes_stronger(models, conditions);
    return settle(report, Verdict::kIdentical, *sentence);
  }
  const Claim& claim = *strongest(report.claims);
  report.claim = to_string(claim.scope);
  settle(report, claim.verdict, claim.sentence);
}

}  // namespace olmo::report
