#include "report/parity_training.h"

#include <algorithm>
#include <map>

#include "core/text/text.h"
#include "report/comparability/comparability.h"
#include "report/comparability/loss_means.h"
#include "report/comparability/loss_spans.h"
#include "report/comparability/settings.h"
#include "report/comparability/stated_tokens.h"

namespace olmo::report {
namespace {

/// Where a run has losses: "steps 1, 3, 5 … 399".
std::string places_of(const store::RecordedRun& run, const char* unit,
                      const std::vector<std::int64_t>& at) {
  constexpr std::size_t kShown = 3;
  std::string text = run.label + " has " + unit;
  for (std::size_t i = 0; i < std::min(kShown, at.size()); ++i)
    text += (i == 0 ? " " : ", ") + std::to_string(at[i]);
  return at.size() <= kShown ? text : text + " … " + std::to_string(at.back());
}

/// Two records that are sound, and of which no step is the same.
void add_nothing_in_common(ParityReport& report) {
  const store::RecordedRun &a = *report.a.run, &b = *report.b.run;
  const bool tokens = a.tokens_known && b.tokens_known;
  const char* unit = tokens ? "losses at tokens" : "losses at steps";
  const auto at = [&](const store::RecordedRun& run) {
    return places_of(run, unit, tokens ? run.steps.tokens : run.steps.step);
  };
  report.gate.mismatches.insert(
      report.gate.mismatches.begin(),
      {"common steps", "", "", MismatchClass::kFatal,
       "There is none: " + at(a) + "; " + at(b) + ". Compared is what both sides have."});
}

/// Steps that are numbered differently cannot be set against each other; what else parts caps the
/// verdict (conditions_of).
void add_partings(ParityReport& report) {
  const std::string& unit = report.trajectory->unit_of_partings;
  for (const Parting& parting : report.trajectory->partings) {
    if (parting.cause == Parting::Cause::kShifted)
      report.gate.mismatches.insert(
          report.gate.mismatches.begin(),
          {unit + " numbers", "", "", MismatchClass::kFatal, sentence_of(parting, unit)});
    else
      report.caveats.push_back(sentence_of(parting, unit));
  }
}

/// As the compared runs were given theirs.
void give_candidate_tokens(store::RecordedRun& run, const ParityReport& report,
                           const ParityOptions& options) {
  const bool told = report.a.run->tokens_known && report.b.run->tokens_known;
  if (options.tokens_per_step)
    give_tokens(run, *options.tokens_per_step);
  else if (const auto stated = stated_tokens(run); told && stated && run.imported)
    give_tokens(run, *stated);
}

/// Logs may tell scores, which nothing is certified of: they are named, and so is what one side
/// alone tells.
void add_scores_of_logs(ParityReport& report) {
  std::map<std::string, std::string> sides;  // "AB", "A" or "B"
  for (const auto& [letter, run] : {std::pair('A', &*report.a.run), std::pair('B', &*report.b.run)})
    if (run->imported)
      for (const auto& metric : run->metrics) sides[metric.name] += letter;
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [name, of] : sides) names[of].push_back(name);
  if (names.empty()) return;
  std::string text = "Not compared: the metrics of the logs (";
  const char* separator = "";
  for (const auto& [of, listed] : names) {
    text += separator + std::string(of == "AB" ? "both tell " : "only " + of + " tells ") +
            joined(listed);
    separator = "; ";
  }
  report.caveats.push_back(text + "). Evaluate a checkpoint of each side to compare scores.");
}

/// The loss that OLMo logs of its fused kernel holds the z-loss, which other losses do not.
void add_z_loss_of_logs(ParityReport& report) {
  const auto holds = [](const store::RecordedRun& run) {
    return run.imported && is_set(settings_of(run), "fused_loss");
  };
  const store::RecordedRun &a = *report.a.run, &b = *report.b.run;
  if (holds(a) == holds(b)) return;
  report.caveats.push_back("The losses of " + (holds(a) ? a : b).label +
                           " are OLMo's with fused_loss=true, which hold the z-loss, too; those of "
                           "the other side may not.");
}

}  // namespace

void compare_training(ParityReport& report, const SideRecords& a, const SideRecords& b,
                      const ParityOptions& options) {
  if (const auto reason = axes_differ(*report.a.run, *report.b.run)) {
    report.damage.push_back(*reason);
    return;
  }
  report.trajectory = compare_trajectories(*report.a.run, *report.b.run);
  if (report.trajectory->loss.values.empty()) {
    const bool shifted = !report.trajectory->partings.empty();
    if (shifted && report.kind == Kind::kTrajectory)
      add_partings(report);
    else
      add_nothing_in_common(report);
    report.trajectory.reset();
    return;
  }
  auto candidates = read_candidates(report.a, a, report.b, b);
  for (Candidate& candidate : candidates) {
    give_candidate_tokens(candidate.run, report, options);
    if (report.over_labels) take_over_labels(candidate.run);
    if (!report.mean_spans.steps.empty()) take_means(candidate.run, report.mean_spans);
  }
  report.noise =
      noise_floor(*report.a.run, *report.b.run, candidates, tested_stretch(*report.trajectory));
  report.trajectory->last_a = report.noise.values_a.front();
  report.trajectory->last_b = report.noise.values_b.front();
  const auto& caveats = report.trajectory->caveats;
  report.caveats.insert(report.caveats.end(), caveats.begin(), caveats.end());
  const auto& lost = report.noise.lost;
  report.caveats.insert(report.caveats.end(), lost.begin(), lost.end());
  add_scores_of_logs(report);
  add_z_loss_of_logs(report);
  if (report.kind == Kind::kTrajectory) add_partings(report);  // else other data was asked for
}

}  // namespace olmo::report
