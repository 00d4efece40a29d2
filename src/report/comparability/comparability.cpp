#include "report/comparability/comparability.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "core/compute/policy.h"
#include "core/error.h"
#include "report/comparability/loss_means.h"
#include "report/comparability/settings.h"
#include "report/stats/curve_difference.h"

namespace olmo::report {
namespace {

/// The step before the first: 0, or the step of a checkpoint that the run began from.
std::int64_t start_step(const store::RecordedRun& run) {
  const store::StepColumns& steps = run.steps;
  return steps.steps_known && steps.size() > 0 ? steps.step.front() - 1 : 0;
}

std::vector<store::StateHash> start_of(const store::RecordedRun& run) {
  const auto found = run.state_hashes.find(start_step(run));
  if (found == run.state_hashes.end()) return {};
  auto rows = found->second;
  std::erase_if(rows, [](const auto& row) { return row.part != "model"; });
  return rows;
}

/// The precision of the wider tolerance, where both sides tell theirs.
std::pair<double, std::string> tolerance_of(const store::RecordedRun& a,
                                            const store::RecordedRun& b) {
  const auto full = [](const std::string& precision) {
    return precision == to_string(Precision::kFp32) || precision == "float32";
  };
  const std::string in_a = precision_of(a), in_b = precision_of(b);
  if (full(in_a) && full(in_b)) return {kFirstLossTolerance, to_string(Precision::kFp32)};
  if (in_a.empty() || in_b.empty()) return {kFirstLossToleranceBf16, "precision unknown"};
  return {kFirstLossToleranceBf16, full(in_a) ? in_b : in_a};
}

/// Nothing where the first common losses are not those of the first step of both: of runs that went
/// different ways before, any difference may have grown.
std::optional<FirstLoss> first_loss_of(const store::RecordedRun& a, const store::RecordedRun& b,
                                       bool same_start) {
  const auto common = common_steps(a.steps, b.steps);
  if (common.empty() || common[0] != std::pair<std::size_t, std::size_t>(0, 0)) return std::nullopt;
  FirstLoss first;
  for (const auto* run : {&a, &b}) {
    if (!run->steps.steps_known) continue;
    first.step = run->steps.step.front();
    if (*first.step != 1 && !same_start) return std::nullopt;
  }
  if (!first.step && !same_start) return std::nullopt;
  first.a = a.steps.loss[0];
  first.b = b.steps.loss[0];
  if (!std::isfinite(first.a) || !std::isfinite(first.b)) return std::nullopt;
  const double larger = std::max({std::abs(first.a), std::abs(first.b), 1e-300});
  first.relative = std::abs(first.b - first.a) / larger;
  std::tie(first.tolerance, first.basis) = tolerance_of(a, b);
  const double rounding = (rounding_of(a) + rounding_of(b)) / 2;
  first.tolerance_fp32 = kFirstLossTolerance;
  first.means_known = !one_mean_is_unknown(a, b);
  first.precision_known = !precision_of(a).empty() && !precision_of(b).empty();
  for (double* tolerance : {&first.tolerance, &first.tolerance_fp32})
    *tolerance += rounding / larger;
  if (rounding > 0) first.basis += ", decimals of a log";
  return first;
}

}  // namespace

std::optional<std::string> axes_differ(const store::RecordedRun& a, const store::RecordedRun& b) {
  if (a.tokens_known == b.tokens_known || a.steps.size() == 0 || b.steps.size() == 0)
    return std::nullopt;
  const store::RecordedRun& with = a.tokens_known ? a : b;
  const store::RecordedRun& without = a.tokens_known ? b : a;
  return without.label + " tells steps and no tokens, " + with.label +
         (with.steps.steps_known ? " tells tokens" : " tells tokens and no steps") +
         ": steps and tokens cannot be set against each other. If each of its steps has as many, "
         "say --tokens-per-step N, the instances of a step times their length.";
}

std::string precision_of(const store::RecordedRun& run) {
  const Settings settings = settings_of(run);
  // OLMo's key, and torchtitan's.
  for (const char* key : {"precision", "training.mixed_precision_param"})
    if (settings.contains(key)) return shown_value(settings, key);
  return "";
}

double rounding_of(const store::RecordedRun& run) {
  constexpr std::ptrdiff_t kFewest = 5;  // that many are not whole by chance
  constexpr int kMostDecimals = 6;       // fp32 has no more to lose
  std::vector<double> losses;
  std::ranges::copy_if(as_written(run.steps), std::back_inserter(losses),
                       [](double loss) { return std::isfinite(loss); });
  if (!run.imported || std::ssize(losses) < kFewest) return 0;
  double unit = 1;
  for (int decimals = 0; decimals <= kMostDecimals; ++decimals, unit /= 10) {
    const bool whole = std::all_of(losses.begin(), losses.end(), [&](double loss) {
      return std::abs(loss / unit - std::round(loss / unit)) < 1e-4;
    });
    if (whole) return unit * run.steps.loss_factor;
  }
  return 0;
}

bool unlike_batches(const store::RecordedRun& a, const store::RecordedRun& b) {
  const auto x = tokens_per_step(a), y = tokens_per_step(b);
  return x && y && *x != *y;
}

Comparability comparability(const store::RecordedRun& a, const store::RecordedRun& b) {
  Comparability found;
  const auto start_a = start_of(a);
  const auto start_b = start_of(b);
  found.start_known = !start_a.empty() && !start_b.empty();
  found.same_start =
      found.start_known && std::equal(start_a.begin(), start_a.end(), start_b.begin(),
                                      start_b.end(), [](const auto& x, const auto& y) {
                                        return x.name == y.name && x.sha256 == y.sha256;
                                      });
  const auto same_order = same_batches(a, b);
  found.order_known = same_order.has_value();
  found.same_order = same_order.value_or(false);
  found.tokens_a = tokens_per_step(a);
  found.tokens_b = tokens_per_step(b);
  found.batch_size_known = found.tokens_a && found.tokens_b;
  found.same_batch_size = !found.batch_size_known || *found.tokens_a == *found.tokens_b;
  if (!axes_differ(a, b)) found.first_loss = first_loss_of(a, b, found.same_start);
  return found;
}

std::optional<std::int64_t> tokens_per_step(const store::RecordedRun& run) {
  const store::StepColumns& steps = run.steps;
  if (!run.tokens_known || !steps.steps_known || steps.size() == 0) return std::nullopt;
  // What came before the first may have been counted otherwise: from 0, or with another batch.
  if (steps.size() > 1)
    return (steps.tokens[1] - steps.tokens[0]) /
           std::max<std::int64_t>(1, steps.step[1] - steps.step[0]);
  if (steps.step[0] > 0) return steps.tokens[0] / steps.step[0];
  return std::nullopt;
}

std::optional<bool> same_batches(const store::RecordedRun& a, const store::RecordedRun& b) {
  const bool told = !a.steps.batch.empty() && !b.steps.batch.empty();
  if (!told || a.chain_format != b.chain_format) return std::nullopt;  // one batch, other hashes
  const auto steps = common_steps(a.steps, b.steps);
  return !steps.empty() && std::all_of(steps.begin(), steps.end(), [&](const auto& step) {
    return a.steps.batch[step.first] == b.steps.batch[step.second];
  });
}

std::vector<std::pair<std::size_t, std::size_t>> common_steps(const store::StepColumns& a,
                                                              const store::StepColumns& b) {
  const bool steps = a.steps_known && b.steps_known;
  return common_places(steps ? a.step : a.tokens, steps ? b.step : b.tokens);
}

std::optional<double> first_loss_difference(const store::StepColumns& a,
                                            const store::StepColumns& b) {
  const auto steps = common_steps(a, b);
  if (steps.empty()) return std::nullopt;
  const double in_a = a.loss[steps[0].first], in_b = b.loss[steps[0].second];
  if (!std::isfinite(in_a) || !std::isfinite(in_b)) return std::nullopt;
  return std::abs(in_b - in_a) / std::max(std::abs(in_a), 1e-300);
}

namespace {

Kind kind_of_evaluations(const Side& a, const Side& b, std::string& reason) {
  if (!a.evaluation || !b.evaluation)
    throw Error(ErrorKind::kUsage, a.label + " and " + b.label +
                                       ": have neither steps nor evaluations in common, "
                                       "so there is nothing to compare");
  const std::string& weights = a.evaluation->weights_digest;
  if (weights.empty() || b.evaluation->weights_digest.empty())
    throw Error(ErrorKind::kUsage,
                "an imported evaluation does not tell whether both sides had the same weights: "
                "say --kind checkpoint (the same weights) or --kind outcome (two trainings)");
  const bool same = weights == b.evaluation->weights_digest;
  reason = same ? "Evaluations of the same weights." : "Evaluations of different weights.";
  return same ? Kind::kCheckpoint : Kind::kOutcome;
}

Kind kind_of_trainings(const Side& a, const Side& b, std::string& reason) {
  if (a.run->imported || b.run->imported)
    throw Error(ErrorKind::kUsage,
                "an imported log does not tell whether both runs had the same start and data: say "
                "--kind trajectory (they had) or --kind outcome (independent trainings)");
  const Comparability found = comparability(*a.run, *b.run);
  const bool near = found.first_losses_agree();
  if (found.same_order && found.same_start) {
    reason = "The same initial weights and, at every common step, the same batch.";
    return Kind::kTrajectory;
  }
  if (found.same_order && near) {
    reason = "The same batches, and starts whose first losses differ by less than rounding.";
    return Kind::kTrajectory;
  }
  if (!found.order_known && found.same_batch_size) {
    if (!found.same_start || !near)
      throw Error(
          ErrorKind::kUsage,
          "the records hash their batches in different formats and have no common start, so "
          "they do not tell whether both runs had the same data: say --kind trajectory "
          "(they had) or --kind outcome (independent trainings)");
    reason = "The same initial weights, and first losses that differ by less than rounding.";
    return Kind::kTrajectory;
  }
  if (found.same_start && !found.same_batch_size) {
    reason = "The same initial weights; the batch sizes differ, so the runs are aligned on tokens.";
    return Kind::kTrajectory;
  }
  reason = found.same_order ? "The same data order, but other initial weights."
                            : "Another data order, hence independent trainings.";
  return Kind::kOutcome;
}

}  // namespace

Kind find_kind(const Side& a, const Side& b, std::optional<Kind> given, std::string& reason) {
  if (given) {
    reason = std::string("--kind ") + to_string(*given) + " says so.";
    return *given;
  }
  return a.has_steps() && b.has_steps() ? kind_of_trainings(a, b, reason)
                                        : kind_of_evaluations(a, b, reason);
}

}  // namespace olmo::report
