#include "report/evaluations/evaluation_places.h"

#include <algorithm>
#include <cstdlib>

#include "page/html.h"
#include "report/comparability/comparability.h"

namespace olmo::report {
namespace {

const store::RecordedRun* with_tokens(const Side& side) {
  return side.run && tokens_per_step(*side.run) ? &*side.run : nullptr;
}

}  // namespace

std::optional<std::int64_t> tokens_at(const store::RecordedRun& run, std::int64_t step) {
  const auto batch = tokens_per_step(run);
  const auto &steps = run.steps.step, &tokens = run.steps.tokens;
  const auto found = std::ranges::lower_bound(steps, step);
  if (!batch || found == steps.end()) return std::nullopt;
  const auto next = static_cast<std::size_t>(found - steps.begin());
  const std::int64_t seen = tokens[next] - (steps[next] - step) * *batch;
  if (steps[next] == step || next == 0) return seen < 0 ? std::nullopt : std::optional(seen);
  // Between the rows of a log that tells not every step, if all of them had as many tokens.
  const std::int64_t between = (steps[next] - steps[next - 1]) * *batch;
  return tokens[next] - tokens[next - 1] == between ? std::optional(seen) : std::nullopt;
}

EvaluationPlaces::EvaluationPlaces(const Side& a, const Side& b)
    : a_(with_tokens(a)), b_(with_tokens(b)) {
  if (!a_ || !b_) return;
  batch_ = std::min(*tokens_per_step(*a_), *tokens_per_step(*b_));
  unlike_ = unlike_batches(*a_, *b_);
}

bool EvaluationPlaces::same(std::int64_t in_a, std::int64_t in_b) const {
  if (!unlike_) return in_a == in_b;
  const auto x = tokens_at(*a_, in_a), y = tokens_at(*b_, in_b);
  // A log may count some tokens of each step less, or more.
  return x && y && 2 * std::abs(*x - *y) < batch_;
}

std::string EvaluationPlaces::text(char side, std::int64_t step) const {
  std::string text = "step " + std::to_string(step);
  if (!unlike_) return text;
  const auto tokens = tokens_at(side == 'A' ? *a_ : *b_, step);
  return text + (tokens ? " (" + page::count(*tokens) + " tokens)" : " (tokens not known)");
}

}  // namespace olmo::report
