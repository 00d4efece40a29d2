// What repeated runs of a side say about chance.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/claim.h"
#include "report/side.h"
#include "report/stats/interval.h"

namespace olmo::report {

/// What repeated runs say about chance.
struct NoiseFloor {
  std::vector<std::string> runs_a, runs_b;  ///< labels of the repeats, with their tag
  std::int64_t k_a = 1, k_b = 1;            ///< runs of a side, the compared one included
  std::vector<double> values_a, values_b;   ///< mean loss of the last stretch, compared run first
  std::optional<double> seed_deviation;     ///< pooled standard deviation of the values
  std::optional<double> p;                  ///< label permutation test, with K >= 2 on both sides
  std::optional<double> minimum_p;
  std::optional<Equivalence> equivalence;  ///< Welch, K >= 2 on both sides
  std::vector<Test> tests;                 ///< about the setups: repeats, branches, published noise
  std::vector<double> envelope_tokens;     ///< |difference| of repeats to their compared run …
  std::vector<double> envelope;            ///< … the largest at that many tokens
  std::string to_run;                      ///< what is missing; empty: nothing
};

/// Runs of a side's database whose tag begins with `noise` or `repeat` and that could be repeats.
std::vector<store::RecordedRun> find_repeats(const Side& side,
                                             const store::RecordDatabase& records);
NoiseFloor noise_floor(const Side& a, const Side& b,
                       const std::vector<store::RecordedRun>& repeats_a,
                       const std::vector<store::RecordedRun>& repeats_b, double share);

/// Mean loss over the last `share` of the tokens.
double last_mean(const store::RecordedRun& run, double share);

}  // namespace olmo::report
