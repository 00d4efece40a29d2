#include "report/decide.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "report/stats/paired_outcomes.h"

namespace olmo::report {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string points(double fraction) { return number(100 * fraction) + " pp"; }

/// What one comparison shows.
enum class Finding {
  kCertified,   ///< within its margin
  kNothing,     ///< not certified, but nothing differs at all
  kOpen,        ///< neither within nor beyond the margin for sure
  kNegligible,  ///< significant and certified
  kDifferent,   ///< significant and beyond the margin
};

struct Evidence {
  Finding finding;
  std::string sentence;
};

/// A paired comparison with its test of a difference and its test of equivalence.
Finding judge(double p, double difference, const Equivalence& equivalence, bool identical) {
  const bool significant = p <= kAlpha;
  if (significant && equivalence.certified) return Finding::kNegligible;
  if (significant && std::abs(difference) > equivalence.margin) return Finding::kDifferent;
  if (equivalence.certified) return Finding::kCertified;
  return identical ? Finding::kNothing : Finding::kOpen;
}

Evidence judge_task(const TaskComparison& task) {
  Evidence found{judge(task.holm_p, task.difference, task.equivalence, task.flips == 0), ""};
  const std::string where = task.task + " (" + points(task.difference) + ", margin ±" +
                            points(task.equivalence.margin) + ", n = " + std::to_string(task.n) +
                            ")";
  switch (found.finding) {
    case Finding::kDifferent:
      found.sentence = where + " differs, Holm p = " + number(task.holm_p);
      break;
    case Finding::kNegligible:
      found.sentence = where + " differs within its margin, Holm p = " + number(task.holm_p);
      break;
    case Finding::kCertified:
      break;
    default:
      found.sentence = where + " needs n = " + std::to_string(task.needed_n) + " to certify ±" +
                       points(task.equivalence.margin);
  }
  return found;
}

Evidence judge_source(const SourceComparison& source) {
  const std::string where = source.suite + (source.source.empty() ? "" : "/" + source.source) +
                            " (" + number(source.difference) + " " + source.unit + ")";
  if (!source.equivalence) {
    const bool equal = source.equal_bits == source.documents;
    return {equal ? Finding::kNothing : Finding::kOpen,
            where + " has too few documents for a test"};
  }
  const bool equal = source.equal_bits == source.documents;
  Evidence found{judge(source.holm_p, source.difference, *source.equivalence, equal), ""};
  if (found.finding == Finding::kDifferent)
    found.sentence = where + " differs, Holm p = " + number(source.holm_p);
  if (found.finding == Finding::kNegligible) found.sentence = where + " differs within its margin";
  if (found.finding == Finding::kOpen)
    found.sentence = where + " is not certified within ±" + number(source.equivalence->margin);
  return found;
}

Evidence judge_groups(const NoiseFloor& noise) {
  const Equivalence& test = *noise.equivalence;
  const Finding finding =
      judge(noise.p.value_or(1), test.estimate, test, test.estimate == 0 && test.certified);
  const std::string numbers = number(test.estimate) + " nats, margin ±" + number(test.margin) +
                              ", " + std::to_string(noise.k_a) + " and " +
                              std::to_string(noise.k_b) + " runs";
  switch (finding) {
    case Finding::kDifferent:
      return {finding, "the mean losses of the runs differ (" + numbers +
                           ", permutation p = " + number(*noise.p) + ")"};
    case Finding::kNegligible:
      return {finding, "the mean losses of the runs differ within the margin (" + numbers + ")"};
    case Finding::kCertified:
      return {finding, ""};
    default:
      return {finding, "the mean losses of the runs are not certified (" + numbers + ")"};
  }
}

/// One pair of runs: its difference is one draw of chance, so only one that lies beyond the margin
/// as a whole counts, and only with the same start and data.
Evidence judge_pair(const Trajectory& trajectory, Kind kind) {
  const LastStretch& last = trajectory.last;
  const std::string numbers = "the loss of the last stretch differs by " + number(last.mean) +
                              " nats, margin ±" + number(trajectory.margin);
  const double margin = trajectory.margin;
  if (!last.test) {  // a trend: without independent steps only what holds for all of them counts
    const Interval& range = trajectory.last_range;
    const bool beyond = last.points > 0 && (range.low > margin || range.high < -margin);
    const std::string few = "the last stretch has too few independent steps for a test (" +
                            std::to_string(last.points) + " points)";
    if (beyond && kind == Kind::kTrajectory)
      return {Finding::kDifferent, numbers + ", and every single step by more than the margin"};
    const bool within = last.points > 0 && range.inside(margin);
    return {within ? Finding::kNothing : Finding::kOpen,
            few + (within ? ", though each lies within the margin" : "")};
  }
  if (last.test->certified) return {Finding::kCertified, ""};
  const Interval& wide = *trajectory.last_interval95;
  const bool beyond = wide.low > margin || wide.high < -margin;
  if (beyond && kind == Kind::kTrajectory) return {Finding::kDifferent, numbers};
  return {Finding::kOpen, numbers + (beyond ? ", but one run a side cannot tell chance from a "
                                              "difference"
                                            : "")};
}

std::vector<Evidence> gather(const ParityReport& report) {
  std::vector<Evidence> all;
  if (report.trajectory) {
    all.push_back(judge_pair(*report.trajectory, report.kind));
    if (report.noise.equivalence) {
      const Evidence groups = judge_groups(report.noise);
      // Independent trainings are compared as groups; their curves need not agree pair by pair.
      if (report.kind == Kind::kOutcome) all.clear();
      all.push_back(groups);
    }
  }
  std::vector<Evidence> scores;
  if (report.tasks) {
    for (const auto& task : report.tasks->tasks) scores.push_back(judge_task(task));
    if (const auto& macro = report.tasks->macro) {
      const bool none = report.tasks->all_flips == 0;
      if (!macro->equivalence.certified)
        scores.push_back({none ? Finding::kNothing : Finding::kOpen,
                          "the macro average (" + points(macro->difference) +
                              ") is not certified within ±" + points(macro->equivalence.margin)});
    }
  }
  if (report.perplexity)
    for (const auto& source : report.perplexity->sources) scores.push_back(judge_source(source));
  // Two trainings give two models: what they answer differently may be chance of training.
  for (Evidence& score : scores) {
    if (report.kind != Kind::kCheckpoint && score.finding == Finding::kDifferent)
      score.finding =
          report.noise.k_a >= 2 && report.noise.k_b >= 2 ? Finding::kDifferent : Finding::kOpen;
    all.push_back(score);
  }
  return all;
}

std::string all_of(const std::vector<Evidence>& evidence, Finding finding) {
  constexpr int kShown = 3;
  std::string text;
  int count = 0;
  for (const auto& one : evidence) {
    if (one.finding != finding || one.sentence.empty()) continue;
    if (count++ < kShown) text += (text.empty() ? "" : "; ") + one.sentence;
  }
  if (count > kShown) text += "; and " + std::to_string(count - kShown) + " more";
  return text;
}

std::string success(const ParityReport& report) {
  if (report.trajectory && report.identity.same_training())
    return "Bit for bit the same training in all " + std::to_string(report.identity.common_steps) +
           " common steps";
  std::string text = "No difference was found";
  if (report.trajectory && report.trajectory->last.test)
    text += "; the last stretch differs by " + number(report.trajectory->last.mean) +
            " nats, certified within ±" + number(report.trajectory->margin);
  return text;
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

void decide(ParityReport& report) {
  if (decided_by_records(report)) return;
  const std::vector<Evidence> evidence = gather(report);
  const auto any = [&](Finding finding) {
    return std::any_of(evidence.begin(), evidence.end(),
                       [&](const Evidence& one) { return one.finding == finding; });
  };
  const bool training = report.kind != Kind::kCheckpoint;
  const bool confounded = report.gate.has(MismatchClass::kConfound);
  for (const Side* side : {&report.a, &report.b}) {
    if (side->evaluation && !side->evaluation->sealed) {
      report.caveats.push_back("The evaluation of " + side->label +
                               " is not sealed (an older olmo-harness recorded it): an altered row "
                               "would not be seen.");
    }
  }
  if (training && !report.noise.to_run.empty()) report.caveats.push_back(report.noise.to_run);
  for (const auto& mismatch : report.gate.mismatches) {
    if (mismatch.mismatch == MismatchClass::kConfound)
      report.caveats.push_back("Confounded by " + mismatch.what + " (" + mismatch.a + " and " +
                               mismatch.b + "), so the verdict cannot be EQUIVALENT.");
  }
  if (const auto open = all_of(evidence, Finding::kNothing); !open.empty())
    report.caveats.push_back("Nothing differs, but not enough was compared to certify: " + open +
                             ".");
  if (any(Finding::kDifferent))
    return settle(report, Verdict::kDifferent,
                  "Beyond the margin: " + all_of(evidence, Finding::kDifferent));
  if (any(Finding::kOpen) || evidence.empty())
    return settle(report, Verdict::kInconclusive,
                  evidence.empty() ? "Nothing was compared"
                                   : "Not enough to decide: " + all_of(evidence, Finding::kOpen));
  if (any(Finding::kNegligible))
    return settle(report, Verdict::kDifferentNegligible,
                  "Significant, but within the margins: " + all_of(evidence, Finding::kNegligible));
  if (any(Finding::kNothing) || confounded || (training && !report.noise.to_run.empty())) {
    const char* why = confounded ? "a declared confound"
                      : training && !report.noise.to_run.empty()
                          ? "no noise floor from repeated runs"
                          : "too little data to certify";
    return settle(report, Verdict::kConsistent,
                  success(report) + "; equivalence is not certified for " + why);
  }
  settle(report, Verdict::kEquivalent,
         success(report) + "; every comparison is certified within its margin");
}

}  // namespace olmo::report
