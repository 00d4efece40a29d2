#include "report/training/ending.h"

#include <array>

#include "report/comparability/comparability.h"

namespace olmo::report {
namespace {

struct Ended {
  char letter;
  const store::RecordedRun& run;
};

/// Loss, gradient or weights of a run were not finite in the step after its last.
bool has_diverged(const store::RecordedRun& run) { return run.status == "diverged"; }

/// Where a run ended; where it began, if it trained no step.
std::int64_t end_of(const store::RecordedRun& run, bool tokens) {
  const auto& at = tokens ? run.steps.tokens : run.steps.step;
  return at.empty() ? 0 : at.back();
}

bool by_tokens(const store::RecordedRun& a, const store::RecordedRun& b) {
  return a.tokens_known && b.tokens_known;
}

std::string step_after(const store::RecordedRun& run) {
  return "step " + std::to_string(end_of(run, false) + 1);
}

std::string divergence_of(const Ended& side) {
  return std::string(1, side.letter) + " diverged in " + step_after(side.run) +
         ", whose loss, gradient or weights are not finite";
}

/// A diverged run and the other one; the one that ended first, if both have diverged.
std::optional<std::array<Ended, 2>> diverged_first(const Side& a, const Side& b) {
  if (!a.run || !b.run) return std::nullopt;
  const Ended in_a{'A', *a.run}, in_b{'B', *b.run};
  const bool tokens = by_tokens(in_a.run, in_b.run);
  const bool b_first =
      has_diverged(in_b.run) &&
      (!has_diverged(in_a.run) || end_of(in_b.run, tokens) < end_of(in_a.run, tokens));
  if (b_first) return std::array{in_b, in_a};
  if (!has_diverged(in_a.run)) return std::nullopt;
  return std::array{in_a, in_b};
}

/// Whether a log of another trainer ends before the length that its config tells, by more than the
/// steps between its last two rows.
bool is_cut_short(const store::RecordedRun& run) {
  const auto& steps = run.steps.step;
  return run.imported && run.steps.steps_known && steps.size() > 1 &&
         run.max_steps - steps.back() > steps.back() - steps[steps.size() - 2];
}

}  // namespace

std::optional<std::string> diverged_alone(const Side& a, const Side& b) {
  const auto sides = diverged_first(a, b);
  if (!sides) return std::nullopt;
  const auto& [first, other] = *sides;
  const bool tokens = by_tokens(first.run, other.run);
  if (end_of(other.run, tokens) <= end_of(first.run, tokens)) return std::nullopt;
  const auto x = tokens_per_step(first.run), y = tokens_per_step(other.run);
  const bool unlike = tokens && x && y && *x != *y;  // then steps of both are no measure
  return "These two models differ: " + divergence_of(first) +
         (unlike ? " (after " + std::to_string(end_of(first.run, true)) + " tokens)" : "") +
         ", and " + other.letter + " went on to " +
         (unlike ? std::to_string(end_of(other.run, true)) + " tokens"
                 : "step " + std::to_string(end_of(other.run, false)));
}

std::optional<std::string> cap_of_ends(const Side& a, const Side& b) {
  const auto sides = diverged_first(a, b);
  if (!sides) return std::nullopt;
  const auto& [first, other] = *sides;
  if (has_diverged(other.run)) return std::nullopt;
  return divergence_of(first) + ", and " + other.letter + " ends before it";
}

std::vector<std::string> caveats_of_ends(const Side& a, const Side& b) {
  std::vector<std::string> caveats;
  for (const Side* side : {&a, &b}) {
    if (!side->run || (side->run->status == "finished" && !is_cut_short(*side->run))) continue;
    const store::RecordedRun& run = *side->run;
    const std::string name = side == &a ? "A" : "B";
    if (has_diverged(run)) {
      if (!diverged_alone(a, b)) caveats.push_back(divergence_of({name[0], run}) + ".");
      continue;
    }
    caveats.push_back(name + " is no finished training: its " +
                      (run.imported ? "log ends" : "record is " + run.status) + " at step " +
                      std::to_string(end_of(run, false)) + " of " + std::to_string(run.max_steps) +
                      ".");
  }
  return caveats;
}

}  // namespace olmo::report
