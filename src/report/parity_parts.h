// The parts that `compare` is made of, in the order in which they run.
#pragma once

#include "report/parity.h"

namespace olmo::report {

/// What decides the kind, as far as the records tell.
struct Comparability {
  bool same_start = false;  ///< hashes of the initial weights are equal
  bool start_known = false;
  bool same_order = false;  ///< every common step saw the same batch
  bool order_known = false;
  bool same_batch_size = false;  ///< tokens per step; true where a side does not tell them
  bool batch_size_known = false;
  std::optional<double> first_loss;  ///< first_loss_difference
};
Comparability comparability(const store::RecordedRun& a, const store::RecordedRun& b);
/// Why the curves have no axis in common: one side tells tokens and the other does not.
std::optional<std::string> axes_differ(const store::RecordedRun& a, const store::RecordedRun& b);
/// |B - A| / |A| at the first common step; nothing if there is none, or a loss is not finite.
std::optional<double> first_loss_difference(const store::StepColumns& a,
                                            const store::StepColumns& b);

/// The kind of comparison and how it is known. Throws Error(kUsage) where the records do not tell
/// and `given` is absent.
Kind find_kind(const Side& a, const Side& b, std::optional<Kind> given, std::string& reason);

Gate compare_settings(const Side& a, const Side& b, Kind kind);
/// True if two runs could be repeats of each other: no fatal mismatch and no confound.
bool are_repeats(const store::RecordedRun& a, const store::RecordedRun& b);

/// `margin` and its source come from the noise floor.
Trajectory compare_trajectories(const store::RecordedRun& a, const store::RecordedRun& b);
/// The test of the last stretch against `margin`, declared before the difference is looked at.
void test_trajectory(Trajectory& trajectory, const NoiseFloor& noise);
/// Spikes, restarts, gaps and errors of one run, by step.
std::vector<Mark> marks_of(const store::RecordedRun& run, char side);
/// Mean loss over the last `share` of the tokens.
double last_mean(const store::RecordedRun& run, double share);

/// Runs of a side's database whose tag begins with `noise` or `repeat` and that could be repeats.
std::vector<store::RecordedRun> find_repeats(const Side& side,
                                             const store::RecordDatabase& records);
NoiseFloor noise_floor(const Side& a, const Side& b,
                       const std::vector<store::RecordedRun>& repeats_a,
                       const std::vector<store::RecordedRun>& repeats_b, double share);

/// Fills in verdict, reason and caveats from all other parts.
void decide(ParityReport& report);

}  // namespace olmo::report
