#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/recorded_run.h"
#include "report/stats/trajectory_statistics.h"
#include "report/verdict.h"

namespace olmo::report {

/// Equal start and data, and yet losses of step 1 further apart than this (relative): a bug of the
/// configuration and not of the hardware. Between vendors at most 1.1e-6 was measured, after a
/// change of the code at least 9.5e-5.
inline constexpr double kFirstLossTolerance = 2e-5;

/// Of a mark whose run tells tokens and no steps.
inline constexpr std::int64_t kUnknownStep = -1;

/// A marked event of one side.
struct Mark {
  char side = 'A';
  std::int64_t step = 0, tokens = 0;
  std::string kind;  ///< spike, restart, gap, skipped, diverged
  std::string text;
};

/// What repeated runs say about chance.
struct NoiseFloor {
  std::vector<std::string> runs_a, runs_b;  ///< labels of the repeats, with their tag
  std::int64_t k_a = 1, k_b = 1;            ///< runs of a side, the compared one included
  std::vector<double> values_a, values_b;   ///< mean loss of the last stretch, compared run first
  std::optional<double> seed_deviation;     ///< pooled standard deviation of the values
  std::optional<double> p;                  ///< label permutation test, with K >= 2 on both sides
  std::optional<double> minimum_p;
  std::optional<Equivalence> equivalence;  ///< Welch, K >= 2 on both sides
  std::vector<double> envelope_tokens;     ///< |difference| of repeats to their compared run …
  std::vector<double> envelope;            ///< … the largest at that many tokens
  std::string to_run;                      ///< what is missing; empty: nothing
};

struct Trajectory {
  bool tokens_known = true;
  bool binned = false;  ///< other batch sizes: means in bins of tokens
  std::int64_t bin_tokens = 0;
  CurveDifference loss;            ///< B minus A
  CurveDifference grad_norm;       ///< may be empty
  double first_loss_relative = 0;  ///< |B - A| / |A| at the first common step
  double largest = 0, largest_relative = 0;
  double largest_smoothed = 0;  ///< after a moving average over 1 % of the points
  std::optional<Growth> growth;
  double share = 0.1;         ///< of the tokens, tested at the end
  double margin = 0.002;      ///< nats
  std::string margin_source;  ///< one sentence
  LastStretch last;
  std::optional<Interval> last_interval95;
  Interval last_range;            ///< smallest and largest difference in the last stretch
  double last_a = 0, last_b = 0;  ///< mean losses of the last stretch
  std::optional<Drift> drift;
  std::vector<Mark> marks;
};

}  // namespace olmo::report
