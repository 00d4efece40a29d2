// How two loss curves differ, and what happened to a run on its way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/claims/claim.h"
#include "report/claims/verdict.h"
#include "report/stats/curve_difference.h"
#include "report/stats/trajectory_statistics.h"
#include "report/training/decimals.h"
#include "report/training/parting.h"
#include "report/training/repeats.h"
#include "store/runs/recorded_run.h"

namespace olmo::report {

/// Of a mark whose run tells tokens and no steps.
inline constexpr std::int64_t kUnknownStep = -1;

/// A marked event of one side.
struct Mark {
  char side = 'A';
  std::int64_t step = 0, tokens = 0;
  std::string kind;  ///< spike, restart, gap, skipped, diverged
  std::string text;
};

/// Spikes, restarts, gaps and errors of one run, by step.
std::vector<Mark> marks_of(const store::RecordedRun& run, char side);

struct Trajectory {
  bool tokens_known = true;
  bool binned = false;  ///< other batch sizes: means in bins of tokens
  std::int64_t bin_tokens = 0;
  CurveDifference loss;            ///< B minus A
  CurveDifference grad_norm;       ///< may be empty
  double first_loss_relative = 0;  ///< |B - A| / |A| at the first common step
  std::vector<Parting> partings;
  std::string unit_of_partings = "step";  ///< that their positions count: step or token
  std::vector<std::string> caveats;       ///< gaps, other lengths, decimals: one sentence each
  std::string extent;                     ///< Conditions::extent
  double largest = 0, largest_relative = 0;
  double largest_smoothed = 0;  ///< after a moving average over 1 % of the points
  std::optional<Growth> growth;
  double share = 0.1;         ///< of the tokens that both have, tested at the end
  double margin = 0.002;      ///< nats
  std::string margin_source;  ///< one sentence
  HiddenByDecimals hidden;    ///< of the last stretch, of both sides together
  double rounding = 0;        ///< nats: how far sums in another order may move its mean
  LastStretch last;
  std::optional<Test> test;  ///< about the two models: the last stretch within its own noise
  std::optional<Interval> last_interval95;
  Interval last_range;            ///< smallest and largest difference in the last stretch
  double last_a = 0, last_b = 0;  ///< mean losses of the last stretch
  std::optional<Drift> drift;
  std::vector<Mark> marks;
};

/// `margin` and its reason come by test_trajectory.
Trajectory compare_trajectories(const store::RecordedRun& a, const store::RecordedRun& b);
/// The end of what both runs have: a tenth of it, or more where that has fewer than forty points,
/// at most half. What is left of fewer than 20 points is not tested.
Stretch tested_stretch(const Trajectory& trajectory);
/// The test of the last stretch against `margin`, declared before the difference is looked at.
void test_trajectory(Trajectory& trajectory, const Margin& margin);

}  // namespace olmo::report
