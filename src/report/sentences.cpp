#include "report/sentences.h"

#include <algorithm>
#include <cmath>

#include "core/text/text.h"

namespace olmo::report {
namespace {

std::string number(double value, bool sign = false) {
  return value == 0 ? "0" : formatted(sign ? "%+.3g" : "%.3g", value);
}

std::string with_unit(double value, const Test& test, bool sign = false) {
  return number(value, sign) + " " + test.unit;
}

/// Two models of which one was trained further are compared as far as both go.
std::string subject(const Claim& claim, const Conditions& conditions) {
  const bool curves = claim.decided_by()->endpoint == Endpoint::kLoss;
  const std::string extent =
      curves && !conditions.extent.empty() ? ", " + conditions.extent + "," : "";
  if (claim.scope == Scope::kSetups) return "The two setups" + extent;
  return conditions.kind == Kind::kCheckpoint ? "The two evaluations of the same weights"
                                              : "These two models" + extent;
}

std::string margin_text(const Test& test) {
  const Margin& margin = test.margin;
  std::string text = "±" + with_unit(margin.value, test) + " (";
  if (margin.source == MarginSource::kDeclared)
    return text + "declared by " + margin.who + " at " + margin.when + ")";
  return text +
         (margin.source == MarginSource::kRepeats ? "from repeats" : to_string(margin.source)) +
         ")";
}

std::string how(const Test& test) {
  std::string text = test.method;
  if (test.n > 0) text += ", n = " + std::to_string(test.n);
  if (test.k_a > 1 || test.k_b > 1)
    text += ", " + std::to_string(test.k_a) + " and " + std::to_string(test.k_b) + " runs";
  return test.noise.empty() ? text : text + ", with noise from " + test.noise;
}

/// The estimate with an interval and how it was got.
std::string numbers(const Test& test, bool certify) {
  if (test.too_few)
    return test.name + " differs by " + with_unit(test.estimate, test, true) +
           ", from too few values for a test (n = " + std::to_string(test.n) + ")";
  const Interval& interval = certify ? test.interval90 : test.interval95;
  const bool is_share = test.unit == "%";  // of instances that differ, whichever side is A
  return test.name + (is_share ? " is " : " differs by ") +
         with_unit(test.estimate, test, !is_share) + " (" + (certify ? "90" : "95") +
         " % interval " + number(interval.low) + " to " + number(interval.high) + "; " + how(test) +
         ")";
}

std::string excluded(const Test& test) {
  return "a true difference of " + with_unit(test.excludes, test) +
         " or more is excluded with 95 % confidence";
}

std::string also_certified(const Claim& claim) {
  std::vector<std::string> names;
  for (const Test& test : claim.tests)
    if (test.primary && &test != claim.decided_by()) names.push_back(test.name);
  return names.empty() ? "" : "; also certified: " + joined(names);
}

/// All that the interval leaves is more than the margin, on one side of 0.
bool beyond_margin(const Test& test) {
  const Interval& interval = test.interval95;
  return std::max(interval.low, -interval.high) > test.margin.value;
}

std::string power_text(const Test& test) {
  if (!test.power) return "";
  return ". With these data a pair of equal sides would have been certified in " +
         number(std::round(100 * *test.power)) + " % of cases";
}

std::string nothing_tested(const Claim& claim) {
  if (claim.scope == Scope::kSetups)
    return "Whether the two setups train equally good models is open: one run a side cannot tell "
           "chance from a difference";
  return "Nothing that both sides have compares these two models";
}

std::string capped(const Conditions& conditions) {
  std::string text;
  if (!conditions.caps.empty())
    text += "; equivalence is not certified, as " + joined(conditions.caps);
  if (!conditions.untested.empty())
    text += std::string(text.empty() ? "; equivalence is not certified, as " : "; ") +
            joined(conditions.untested) + " was not measured on the repeats";
  return text;
}

}  // namespace

std::string sentence_of(const Claim& claim, const Conditions& conditions) {
  const Test* test = claim.decided_by();
  if (test == nullptr) return nothing_tested(claim);
  const std::string who = subject(claim, conditions);
  const std::string margin = "the margin " + margin_text(*test);
  switch (claim.verdict) {
    case Verdict::kDifferent:
      return who + " differ" + (beyond_margin(*test) ? " by more than " + margin : "") + ": " +
             numbers(*test, false) + (test->holm_p ? ", Holm p = " + number(*test->holm_p) : "") +
             (beyond_margin(*test)
                  ? ""
                  : "; the estimate is beyond " + margin + ", the interval is not");
    case Verdict::kDifferentNegligible:
      return who + " differ, by less than " + margin + ": " + numbers(*test, false) +
             ", Holm p = " + number(test->holm_p.value_or(0)) + "; " + excluded(*test) +
             also_certified(claim);
    case Verdict::kEquivalent:
      return who + " are equivalent within " + margin + ": " + numbers(*test, true) + "; " +
             excluded(*test) + also_certified(claim);
    case Verdict::kConsistent:
      if (test->certified)
        return who + " show no difference" +
               (test->equal_bits ? ": " : " beyond chance and rounding: ") + numbers(*test, true) +
               "; " + excluded(*test) + ", and " + margin + " holds" + also_certified(claim) +
               capped(conditions);
      return who + " show no difference, but not enough was compared to certify " + margin + ": " +
             numbers(*test, true) + (test->too_few ? "" : "; " + excluded(*test)) +
             power_text(*test);
    default:
      return who + " may differ or not: " + numbers(*test, true) +
             (test->too_few ? "" : "; only " + excluded(*test)) + ", and " + margin +
             " is not certified" + power_text(*test);
  }
}

std::string what_makes_stronger(const Claim& claim, const Conditions& conditions) {
  const Test* test = claim.decided_by();
  if (claim.scope == Scope::kSetups && test == nullptr)
    return "Repeats on each side (another seed): if nothing differs, four a side are certified in "
           "about half of the cases, six in 86 %, eight in 96 %. Or branches: both sides restart "
           "from the same checkpoints. Or a published deviation between runs: --noise FILE. "
           "olmo-harness report plan says how many";
  if (test == nullptr && claim.verdict == Verdict::kInconclusive)
    return "Evaluate a checkpoint of each side: olmo-harness eval CHECKPOINT --run RUN --step N";
  if (claim.verdict == Verdict::kIdentical || claim.verdict == Verdict::kEquivalent ||
      claim.verdict == Verdict::kDifferent || claim.verdict == Verdict::kDifferentNegligible)
    return claim.scope == Scope::kModels && conditions.kind != Kind::kCheckpoint
               ? "Repeats or branches on each side would make it a statement about the setups"
               : "";
  if (claim.verdict == Verdict::kConsistent && test->certified)
    return conditions.caps.empty() ? "Evaluate the repeats as well"
                                   : "What is not known can be stated with --assume KEY=VALUE; "
                                     "what differs has to be made equal";
  if (test->hidden > 0)
    return "Logs with more decimals: a longer stretch does not show what they hide";
  if (claim.scope == Scope::kSetups)
    return "More runs a side (now " + std::to_string(test->k_a) + " and " +
           std::to_string(test->k_b) + "): olmo-harness report plan says how many";
  return "More instances, tasks or evaluated checkpoints, or a longer stretch of the curve; a "
         "wider margin only if it is declared before the other side is read (report declare)";
}

}  // namespace olmo::report
