#include <algorithm>
#include <cmath>

#include "page/html.h"
#include "report/page/sections.h"

namespace olmo::report::page {
namespace {

std::string plural(std::int64_t n, const std::string& noun) {
  return count(n) + " " + noun + (n == 1 ? "" : "s");
}

std::int64_t number_of(const Gate& gate, MismatchClass mismatch) {
  return std::count_if(gate.mismatches.begin(), gate.mismatches.end(),
                       [&](const Mismatch& m) { return m.mismatch == mismatch; });
}

/// What nobody told or assumed, and what could have changed the result.
std::int64_t open_facts(const Gate& gate) {
  return std::count_if(gate.unknown.begin(), gate.unknown.end(), [](const UnknownFact& fact) {
    return fact.assumed.empty() && fact.if_different != MismatchClass::kBenign;
  });
}

Finding of_gate(const Gate& gate) {
  const auto fatal = number_of(gate, MismatchClass::kFatal);
  const auto confounds = number_of(gate, MismatchClass::kConfound);
  const auto equal = static_cast<std::int64_t>(gate.equal.size());
  const auto unknown = open_facts(gate);
  Finding finding{"gate", "Comparability", Standing::kGood, ""};
  if (fatal > 0) {
    finding.standing = Standing::kBad;
    finding.text = count(fatal) + (fatal == 1 ? " fatal mismatch: " : " fatal mismatches, first ") +
                   gate.mismatches.front().what;
  } else if (confounds > 0) {
    finding.standing = Standing::kWarning;
    finding.text = plural(confounds, "declared confound");
  } else if (unknown > 0) {
    finding.standing = Standing::kWarning;
    finding.text = "nothing that both records tell differs";
  } else if (equal == 0) {
    finding.standing = Standing::kAbsent;
    finding.text = "nothing was compared";
  } else if (gate.mismatches.empty()) {
    finding.text = "nothing differs";
  } else {
    finding.text = "what differs cannot change the result, or is what is compared";
  }
  if (equal > 0) finding.text += "; " + plural(equal, "fingerprint") + " equal";
  if (unknown > 0) finding.text += "; " + plural(unknown, "fact") + " not known";
  return finding;
}

Finding of_identity(const Identity& identity) {
  Finding finding{"identity", "Identity", Standing::kAbsent, "no hash chain on both sides"};
  if (!identity.known) return finding;
  const bool identical = identity.first_different == 0;
  finding.standing = identity.same_training() ? Standing::kGood : Standing::kOpen;
  finding.text = identical
                     ? "the same bits for all " + plural(identity.equal_steps, "step")
                     : (identity.equal_steps == 0
                            ? std::string("no step has the same bits")
                            : "the same bits for " + plural(identity.equal_steps, "step")) +
                           "; step " + count(identity.first_different) + " differs" +
                           (identity.first_field.empty() ? "" : " in " + identity.first_field);
  if (!identity.same_format) finding.text += " as far as losses tell (the chains' formats differ)";
  if (const auto& state = identity.parted_state; identical && state)
    finding.text += ", but another state after step " + count(state->step);
  if (const auto& found = identity.operation; found && !found->operation.empty())
    finding.text +=
        std::string(identity.same_steps_and_states() ? ", but another output of" : ", first") +
        " operation " + found->operation;
  return finding;
}

Finding of_noise(const ParityReport& report) {
  const NoiseFloor& noise = report.noise;
  Finding finding{"noise", "Repeated runs", Standing::kOpen, ""};
  finding.text = plural(noise.k_a, "run") + " of A and " + plural(noise.k_b, "run") + " of B";
  if (noise.seed_deviation)
    finding.text += ", deviation between runs " + number(*noise.seed_deviation, 4) + " nats";
  for (const auto& cap : noise.caps) finding.text += "; " + cap;
  if (const Test* test = find_test(report, Scope::kSetups, Endpoint::kLoss))
    finding.standing = !test->certified     ? Standing::kOpen
                       : noise.caps.empty() ? Standing::kGood
                                            : Standing::kWarning;
  else if (!noise.to_run.empty())
    finding.standing = Standing::kWarning;
  return finding;
}

Finding of_trajectory(const ParityReport& report) {
  const auto& trajectory = report.trajectory;
  Finding finding{"trajectory", "Trajectory", Standing::kAbsent, "no training steps on both sides"};
  if (!trajectory) return finding;
  finding.standing = Standing::kOpen;
  finding.text = "last " + number(100 * trajectory->share, 3) + " % of tokens: loss " +
                 signed_number(trajectory->last.mean, 3) + " nats";
  const Test* test = find_test(report, Scope::kModels, Endpoint::kLoss);
  if (test == nullptr) {
    finding.text += report.kind == Kind::kOutcome ? ", of other batches: no test of the two models"
                                                  : "; too few points for a test";
    return finding;
  }
  finding.text += " " + interval_text(test->interval90, 3) +
                  (test->within_margin ? ", inside ±" : ", not inside ±") +
                  number(test->margin.value, 4);
  if (test->within_margin) finding.standing = Standing::kGood;
  for (const Parting& parting : trajectory->partings) {
    finding.standing = Standing::kWarning;
    finding.text += "; " + cap_of(parting, trajectory->unit_of_partings);
  }
  return finding;
}

Finding of_tasks(const std::optional<TasksComparison>& tasks) {
  Finding finding{"tasks", "Tasks", Standing::kAbsent, "no evaluation on both sides"};
  if (!tasks) return finding;
  if (!tasks->invalid.empty() || !tasks->mismatched.empty()) {
    finding.standing = Standing::kBad;
    finding.text = tasks->invalid.empty() ? tasks->mismatched.front() : tasks->invalid.front();
    return finding;
  }
  if (tasks->tasks.empty()) {
    finding.text = "no task on both sides";
    return finding;
  }
  const auto certified =
      std::count_if(tasks->tasks.begin(), tasks->tasks.end(),
                    [](const TaskComparison& task) { return task.equivalence.certified; });
  const auto all = static_cast<std::int64_t>(tasks->tasks.size());
  finding.standing = certified == all ? Standing::kGood : Standing::kOpen;
  finding.text =
      tasks->macro ? "macro average " + points(tasks->macro->difference) + " pp; " : std::string();
  finding.text += count(certified) + " of " + plural(all, "task") + " certified; " +
                  plural(tasks->all_flips, "flip") + ", " + count(tasks->all_explained) +
                  " explained by noise";
  return finding;
}

Finding of_perplexity(const std::optional<PerplexityComparison>& perplexity) {
  Finding finding{"perplexity", "Bits per byte", Standing::kAbsent, "not evaluated on both sides"};
  if (!perplexity) return finding;
  if (!perplexity->invalid.empty() || !perplexity->mismatched.empty()) {
    finding.standing = Standing::kBad;
    finding.text =
        perplexity->invalid.empty() ? perplexity->mismatched.front() : perplexity->invalid.front();
    return finding;
  }
  if (perplexity->sources.empty()) return finding;
  std::int64_t certified = 0;
  double largest = 0;
  for (const SourceComparison& source : perplexity->sources) {
    if (source.equivalence && source.equivalence->certified) ++certified;
    if (std::fabs(source.difference) > std::fabs(largest)) largest = source.difference;
  }
  const auto all = static_cast<std::int64_t>(perplexity->sources.size());
  finding.standing = certified == all ? Standing::kGood : Standing::kOpen;
  finding.text = count(certified) + " of " + plural(all, "comparison") +
                 " certified; largest difference " + signed_number(largest);
  return finding;
}

Finding of_efficiency(const ParityReport& report) {
  Finding finding{"efficiency", "Efficiency", Standing::kAbsent, ""};
  const auto rate = [](const std::optional<Efficiency>& e) -> std::string {
    if (!e || (!e->tokens_per_second && !e->tokens_per_second_per_device)) return "not measured";
    if (e->tokens_per_second && e->devices == 1.0)
      return number(*e->tokens_per_second, 4) + " tokens/s on 1 device";
    std::string each = e->tokens_per_second_per_device
                           ? number(*e->tokens_per_second_per_device, 4) + " per device"
                           : "number of devices not known";
    if (!e->tokens_per_second) return each;
    const std::string devices =
        e->devices ? " on " + plural(static_cast<std::int64_t>(*e->devices), "device") : "";
    return number(*e->tokens_per_second, 4) + " tokens/s" + devices + " (" + each + ")";
  };
  finding.text = "A " + rate(report.efficiency_a) + ", B " + rate(report.efficiency_b);
  return finding;
}

}  // namespace

VerdictLook look_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return {"=", "good"};
    case Verdict::kEquivalent:
      return {"✓", "good"};
    case Verdict::kConsistent:
      return {"≈", "good"};
    case Verdict::kInconclusive:
      return {"?", "warn"};
    case Verdict::kDifferentNegligible:
      return {"≠", "warn"};
    case Verdict::kDifferent:
      return {"≠", "bad"};
    case Verdict::kNotComparable:
      return {"∅", "bad"};
    case Verdict::kInvalidData:
      break;
  }
  return {"✕", "bad"};
}

std::vector<Finding> findings(const ParityReport& report) {
  return {of_gate(report.gate),  of_identity(report.identity), of_noise(report),
          of_trajectory(report), of_tasks(report.tasks),       of_perplexity(report.perplexity),
          of_efficiency(report)};
}

}  // namespace olmo::report::page
