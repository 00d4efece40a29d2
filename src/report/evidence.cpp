#include "report/evidence.h"

#include <algorithm>
#include <array>

#include "core/text/text.h"
#include "report/copies.h"
#include "report/record/contradictions.h"
#include "report/training/assignment.h"
#include "report/training/ending.h"

namespace olmo::report {
namespace {

constexpr double kPoints = 100;  ///< percentage points of a fraction

Interval scaled(const Interval& interval, double factor) {
  return {interval.low * factor, interval.high * factor};
}

Test test_of(const TaskComparison& task) {
  return {.endpoint = Endpoint::kTask,
          .name = task.task,
          .method = "paired instances, score interval and McNemar's mid-p",
          .unit = "pp",
          .estimate = kPoints * task.difference,
          .interval90 = scaled(task.equivalence.interval, kPoints),
          .interval95 = scaled(task.interval95, kPoints),
          .p = task.p,
          .n = task.n,
          .equal_bits = task.flips == 0};
}

Test test_of(const MacroComparison& macro, const TasksComparison& tasks) {
  std::int64_t n = 0;
  for (const auto& task : tasks.tasks) n += task.n;
  return {.endpoint = Endpoint::kMacro,
          .name = "macro average of " + std::to_string(tasks.tasks.size()) + " tasks",
          .method = "paired instances, MOVER over the tasks",
          .unit = "pp",
          .estimate = kPoints * macro.difference,
          .interval90 = scaled(macro.equivalence.interval, kPoints),
          .interval95 = scaled(macro.interval95, kPoints),
          .p = macro.p,
          .n = n,
          .equal_bits = tasks.all_flips == 0};
}

/// Of a suite its macro average, or its only source.
bool heads_suite(const SourceComparison& source, const PerplexityComparison& all) {
  if (source.source.empty()) return true;
  return std::none_of(all.sources.begin(), all.sources.end(), [&](const SourceComparison& other) {
    return other.suite == source.suite && other.source.empty();
  });
}

Test test_of(const SourceComparison& source) {
  Test test{.endpoint = Endpoint::kBpb,
            .name = source.suite + (source.source.empty() ? ", macro" : ", " + source.source),
            .method = "paired documents, bootstrap",
            .unit = source.unit,
            .estimate = source.difference,
            .n = source.documents,
            .equal_bits = source.equal_bits == source.documents,
            .too_few = !source.equivalence};
  if (source.equivalence) test.interval90 = source.equivalence->interval;
  if (source.interval95) test.interval95 = *source.interval95;
  if (source.equivalence) test.p = source.p;
  return test;
}

/// Which options and documents have equal bits; nothing where one has not.
std::optional<std::string> identical_scores(const ParityReport& report) {
  std::int64_t options = 0, documents = 0;
  if (report.tasks) {
    for (const auto& task : report.tasks->tasks) {
      if (task.agreement.equal_bits != task.agreement.options || task.flips > 0)
        return std::nullopt;
      options += task.agreement.options;
    }
  }
  if (report.perplexity) {
    for (const auto& source : report.perplexity->sources) {
      if (source.equal_bits != source.documents) return std::nullopt;
      if (!source.source.empty()) documents += source.documents;
    }
  }
  std::string text;
  if (options > 0) text = counted(options, "score") + " of options";
  if (documents > 0)
    text += (text.empty() ? "" : " and ") + counted(documents, "score") + " of documents";
  return text;
}

std::string identical_steps(const ParityReport& report) {
  const Identity& identity = report.identity;
  std::string text =
      "all " + counted(identity.common_steps, "common step") + " (batches, losses, gradient norms)";
  text += identity.last_state
              ? " and the weights and moments at step " + std::to_string(identity.last_state->step)
              : "; hashes of weights were not recorded on both sides";
  const auto a = std::ssize(report.a.run->steps.step), b = std::ssize(report.b.run->steps.step);
  if (a != identity.common_steps || b != identity.common_steps)
    text += " (A has " + counted(a, "step") + ", B " + std::to_string(b) + ")";
  return text;
}

/// Each side with its letter.
std::array<std::pair<std::string, const Side*>, 2> sides_of(const ParityReport& report) {
  return {{{"A", &report.a}, {"B", &report.b}}};
}

/// What a reader of equal losses must know of the records that they come from.
void add_caveats_of_records(ParityReport& report) {
  const Identity& identity = report.identity;
  const char* which = " `olmo-harness audit` tells which side is wrong.";
  // Of other experiments the settings tell why.
  const bool same_experiment = report.a.run && report.b.run &&
                               report.a.run->experiment_digest == report.b.run->experiment_digest;
  if (identity.first_different != 0 && identity.same_format && same_experiment &&
      !identity.in_chain())
    report.caveats.push_back("Not IDENTICAL: step " + std::to_string(identity.first_different) +
                             " differs first, in " + identity.first_field +
                             ", which no hash chain is over." + which);
  if (identity.same_steps_and_states() && !identity.same_training())
    report.caveats.push_back("Not IDENTICAL, though all steps are equal: operation " +
                             identity.operation->operation + " of step " +
                             std::to_string(*identity.operation->traced) + " gave another output." +
                             which);
  if (!report.unlike_scores.empty())
    report.caveats.push_back("Not IDENTICAL, though all steps are equal: " + report.unlike_scores +
                             " differ. Evaluate that step again on both sides.");
  const auto copies = caveats_of_copies(report);
  report.caveats.insert(report.caveats.end(), copies.begin(), copies.end());
}

/// A branch has only the steps since its checkpoint, which may be the other side's own.
void add_caveats_of_branches(ParityReport& report) {
  for (const auto& [letter, side] : sides_of(report)) {
    if (!side->has_steps() || !is_branch(*side->run)) continue;
    report.caveats.push_back(
        letter + " began at step " + std::to_string(side->run->steps.step.front()) + ", from " +
        side->run->attempts.front().resumed_from + ": nothing is said of the steps before.");
  }
}

/// An audit that found other bits than the record has speaks against its side, whatever the sides
/// have in common.
void add_caveats_of_audits(ParityReport& report) {
  for (const auto& [letter, side] : sides_of(report)) {
    if (!side->run) continue;
    for (const auto& audit : side->run->audits) {
      if (audit.verdict != "different") continue;
      const std::string where = audit.difference_step
                                    ? "step " + std::to_string(*audit.difference_step)
                                    : "steps " + std::to_string(audit.first_step) + " to " +
                                          std::to_string(audit.last_step);
      report.caveats.push_back("An audit of " + letter + " found something else than " +
                               "its record has, at " + where + ": " + audit.difference + ".");
    }
  }
}

/// Of a few facts each is named; of many, as of two trainers' configs, their number.
void append_unknown(const std::vector<UnknownFact>& facts, std::vector<std::string>& caps) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> unknown;
  for (const UnknownFact& fact : facts) {
    if (fact.if_different == MismatchClass::kBenign || !fact.assumed.empty()) continue;
    const char* side = fact.a.empty() == fact.b.empty() ? "" : fact.a.empty() ? " of A" : " of B";
    unknown.push_back(fact.key + " is not known" + side);
  }
  if (unknown.size() > kMostNamed)
    unknown = {std::to_string(unknown.size()) + " facts are not known (the caveats name them)"};
  caps.insert(caps.end(), unknown.begin(), unknown.end());
}

void add_caveats_of_limits(ParityReport& report) {
  const auto limits_of = [](const Side& side) {
    return side.evaluation ? limits_text(*side.evaluation) : std::string();
  };
  const std::string a = limits_of(report.a), b = limits_of(report.b);
  const auto say = [&](const std::string& of, const std::string& limits) {
    if (!limits.empty())
      report.caveats.push_back(of + " scored no more than " + limits +
                               ": what follows holds for these.");
  };
  if (a == b) return say("The evaluations of both sides", a);
  say("The evaluation of " + report.a.label, a);
  say("The evaluation of " + report.b.label, b);
}

}  // namespace

std::vector<Test> tests_of_models(const ParityReport& report) {
  std::vector<Test> tests;
  if (report.kind == Kind::kTrajectory && report.trajectory && report.trajectory->test)
    tests.push_back(*report.trajectory->test);
  if (report.checkpoints) tests.push_back(*report.checkpoints);
  if (report.tasks) {
    tests.insert(tests.end(), report.tasks->score_tests.begin(), report.tasks->score_tests.end());
    if (report.tasks->macro) tests.push_back(test_of(*report.tasks->macro, *report.tasks));
    for (const auto& task : report.tasks->tasks) tests.push_back(test_of(task));
  }
  if (report.perplexity)
    for (const auto& source : report.perplexity->sources)
      if (heads_suite(source, *report.perplexity)) tests.push_back(test_of(source));
  return tests;
}

Conditions conditions_of(const ParityReport& report) {
  Conditions conditions{.kind = report.kind, .margins = report.margins};
  if (report.trajectory) conditions.extent = report.trajectory->extent;
  for (const auto& mismatch : report.gate.mismatches) {
    if (mismatch.mismatch == MismatchClass::kConfound)
      conditions.caps.push_back(mismatch.what + " differs (" + mismatch.a + " and " + mismatch.b +
                                ")");
  }
  append_unknown(report.gate.unknown, conditions.caps);
  if (report.kind == Kind::kTrajectory && report.trajectory)
    for (const Parting& parting : report.trajectory->partings)
      conditions.caps.push_back(cap_of(parting, report.trajectory->unit_of_partings));
  if (auto cap = one_model(report)) conditions.caps.push_back(*std::move(cap));
  if (auto cap = cap_of_ends(report.a, report.b)) conditions.caps.push_back(*std::move(cap));
  for (const auto& [letter, side] : sides_of(report)) {
    const std::string unread = side->run ? unread_config_of(*side->run) : "";
    if (!unread.empty()) conditions.caps.push_back("the record of " + letter + " " + unread);
  }
  return conditions;
}

std::vector<std::string> primary_missing(const std::vector<Test>& models,
                                         const std::vector<Test>& setups) {
  std::vector<std::string> missing;
  for (const Test& test : models) {
    const bool has = std::any_of(setups.begin(), setups.end(), [&](const Test& other) {
      return other.endpoint == test.endpoint;
    });
    if (test.primary && !has) missing.push_back(test.name);
  }
  return missing;
}

void add_caveats(ParityReport& report) {
  add_caveats_of_records(report);
  add_caveats_of_branches(report);
  add_caveats_of_audits(report);
  const auto ends = caveats_of_ends(report.a, report.b);
  report.caveats.insert(report.caveats.end(), ends.begin(), ends.end());
  for (const auto& [letter, side] : sides_of(report)) {
    if (!side->disagreement.empty())
      report.caveats.push_back(letter + " " + side->disagreement + ".");
    if (!side->unchecked.empty())
      report.caveats.push_back("The record of " + letter + " " + side->unchecked + ".");
    if (side->evaluation && !side->evaluation->sealed) {
      report.caveats.push_back("The evaluation of " + side->label +
                               " is not sealed (an older olmo-harness recorded it): an altered row "
                               "would not be seen.");
    }
  }
  add_caveats_of_limits(report);
  for (const auto& mismatch : report.gate.mismatches) {
    if (mismatch.mismatch == MismatchClass::kConfound)
      report.caveats.push_back("Confounded by " + mismatch.what + " (" + mismatch.a + " and " +
                               mismatch.b + "), so the verdict cannot be EQUIVALENT.");
  }
  for (const UnknownFact& fact : report.gate.unknown) {
    if (!fact.assumed.empty()) {
      report.caveats.push_back("Assumed, not recorded: " + fact.key + " = " + fact.assumed + ".");
    } else if (fact.if_different != MismatchClass::kBenign) {
      report.caveats.push_back(
          "Not known: " + fact.key +
          (fact.a.empty() && fact.b.empty()
               ? ""
               : " (" + (fact.a.empty() ? "B: " + fact.b : "A: " + fact.a) + ")") +
          ". If it differs: " + fact.reason + " --assume '" + fact.key + "=" +
          (fact.a.empty() ? fact.b.empty() ? "equal" : fact.b : fact.a) + "' states it.");
    }
  }
}

std::optional<std::string> identical_sentence(const ParityReport& report) {
  const bool trained = report.trajectory.has_value();
  if (trained && !report.identity.same_training()) return std::nullopt;
  if (!report.unlike_scores.empty()) return std::nullopt;
  // What the other would have done in that step is not known.
  if (cap_of_ends(report.a, report.b)) return std::nullopt;
  const auto scores = identical_scores(report);
  if (!scores || (!trained && scores->empty())) return std::nullopt;
  std::string text = "Bit for bit the same: ";
  if (trained) text += identical_steps(report);
  if (!scores->empty())
    text += (trained ? "; " : "") + *scores;
  else
    text += "; evaluations were not compared";
  return text;
}

}  // namespace olmo::report
