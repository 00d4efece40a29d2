#include "report/comparability/loss_spans.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "report/comparability/comparability.h"

namespace olmo::report {
namespace {

/// A row and the loss that it gets.
struct Mean {
  std::size_t row = 0;
  double loss = 0;
};

bool skips_steps(const store::RecordedRun& run) {
  const auto& step = run.steps.step;
  return !step.empty() && step.back() - step.front() + 1 != std::ssize(step);
}

/// Whether its losses are means of several steps.
bool has_means(const store::RecordedRun& run) {
  return skips_steps(run) && loss_span_of(run) == LossSpan::kInterval;
}

/// The step before those of the first row. Of a log that begins late it is not told: its first
/// interval counts as long as the second, or as all steps before if those are fewer.
std::int64_t begin_of(const store::RecordedRun& run) {
  const auto& step = run.steps.step;
  if (!has_means(run)) return step.front() - 1;
  return std::max<std::int64_t>(0, step[0] - (step[1] - step[0]));
}

/// From rows that make them up: every step, or intervals that begin and end there. Nothing: some do
/// not.
std::optional<std::vector<Mean>> means_over(const store::RecordedRun& run, const Spans& spans) {
  const store::StepColumns& rows = run.steps;
  const auto begins_after = std::ranges::upper_bound(rows.step, spans.begin) - rows.step.begin();
  auto row = static_cast<std::size_t>(begins_after);
  const bool has_intervals = has_means(run);
  if (has_intervals && spans.begin != (row == 0 ? begin_of(run) : rows.step[row - 1]))
    return std::nullopt;
  std::vector<Mean> means;
  std::int64_t begin = spans.begin, before = spans.begin;
  for (const std::int64_t step : spans.steps) {
    double sum = 0;
    const std::size_t first = row;
    for (; row < rows.size() && rows.step[row] <= step; before = rows.step[row++]) {
      const std::int64_t width = rows.step[row] - before;
      if (width != 1 && !has_intervals) return std::nullopt;
      sum += rows.loss[row] * static_cast<double>(width);
    }
    if (row == first || before != step) return std::nullopt;
    const bool is_one = row == first + 1;  // whose loss it has, to the bit
    means.push_back({row - 1, is_one ? rows.loss[first] : sum / static_cast<double>(step - begin)});
    begin = step;
  }
  return means;
}

void set(store::RecordedRun& run, const std::vector<Mean>& means) {
  if (run.steps.written_loss.empty()) run.steps.written_loss = run.steps.loss;
  for (const auto& [row, loss] : means) run.steps.loss[row] = loss;
}

/// Whether the losses at common steps are of other steps.
bool are_unlike(const store::RecordedRun& a, const store::RecordedRun& b) {
  return (has_means(a) || has_means(b)) &&
         (has_means(a) != has_means(b) || a.steps.step != b.steps.step);
}

/// A log that tells nothing, and has fewer rows than the other side within the same steps.
const store::RecordedRun* untold(const store::RecordedRun& a, const store::RecordedRun& b) {
  for (const auto* run : {&a, &b})
    if (!loss_span_of(*run) && skips_steps(*run) && a.steps.step != b.steps.step) return run;
  return nullptr;
}

}  // namespace

std::optional<LossSpan> loss_span_of(const store::RecordedRun& run) {
  if (!run.imported || !skips_steps(run)) return LossSpan::kStep;
  const auto environment = store::environment_of(run);
  const auto found = environment.find(kLossSpan);
  if (found == environment.end() || !found->is_string()) return std::nullopt;
  return parse_loss_span(found->get<std::string>());
}

AlignedSpans align_spans(store::RecordedRun& a, store::RecordedRun& b) {
  AlignedSpans found;
  if (!a.steps.steps_known || !b.steps.steps_known) return found;
  if (const auto* run = untold(a, b))
    found.caveat =
        "The log of " + run->label +
        " does not tell whether a loss is that of its step or the mean since the row "
        "before, which is higher where losses fall. `runs import --loss-span` states it.";
  if (!are_unlike(a, b)) return found;
  Spans spans{std::max(begin_of(a), begin_of(b)), {}};
  for (const auto& [i, j] : common_steps(a.steps, b.steps))
    if (a.steps.step[i] > spans.begin) spans.steps.push_back(a.steps.step[i]);
  const auto in_a = means_over(a, spans), in_b = means_over(b, spans);
  const std::string& log = (has_means(a) ? a : b).label;
  const std::string means = "Losses of " + log + " are means of the steps since the row before";
  if (!in_a || !in_b) {
    found.caveat = means +
                   ", which the rows of the other side do not make up: they are compared as they "
                   "are, and higher where losses fall.";
    return found;
  }
  set(a, *in_a);
  set(b, *in_b);
  found.caveat = means + ": compared are such means of both sides.";
  found.spans = std::move(spans);
  return found;
}

void take_means(store::RecordedRun& run, const Spans& spans) {
  if (run.steps.size() == 0) return;
  if (const auto means = means_over(run, spans)) set(run, *means);
}

}  // namespace olmo::report
