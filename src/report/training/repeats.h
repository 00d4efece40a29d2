// What repeated runs of both sides say about chance, and about the setups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/claims/claim.h"
#include "report/stats/interval.h"
#include "report/training/assignment.h"
#include "report/training/branches.h"

namespace olmo::report {

/// The tokens that the pair is tested at: only there runs are compared with runs.
struct Stretch {
  std::int64_t from = 0, to = 0;     ///< first and last
  std::vector<std::int64_t> tokens;  ///< all of them; empty: the pair is compared in bins
};

/// A run that was looked at as a repeat, and what became of it.
struct Repeat {
  std::optional<char> side;  ///< nothing: it belongs to neither
  std::string run_id, tags, host;
  std::optional<std::uint64_t> seed;
  std::string known_by;  ///< how its side is known, or why not
  bool taken = false;    ///< its mean loss is in the test
  std::string left_out;  ///< why it is not; one sentence without its full stop
  bool is_copy = false;  ///< of a run that is taken: nothing is lost
  double mean = 0;       ///< loss over the stretch, of those taken
};

/// What repeated runs say about chance.
struct NoiseFloor {
  std::vector<Repeat> looked_at;            ///< the compared runs first, then by run id
  std::vector<std::string> runs_a, runs_b;  ///< labels of the repeats that were taken
  std::int64_t k_a = 1, k_b = 1;            ///< independent runs, the compared one included
  std::int64_t pairs = 0;                   ///< of one seed on both sides, where they are tested so
  std::vector<double> values_a, values_b;   ///< mean loss of the stretch, compared run first
  std::optional<double> seed_deviation;     ///< pooled standard deviation of the values
  /// The same as a margin may rest on it; absent with one run on a side: a margin must not grow
  /// with what one run did.
  std::optional<RepeatDeviation> margin_deviation;
  std::optional<double> p;  ///< permutation test, with K >= 2 on both sides
  std::optional<double> minimum_p;
  std::optional<Estimate> difference;      ///< of the mean losses, with K >= 2 on both sides
  double hidden = 0;                       ///< of it, by the decimals of logs
  std::optional<Equivalence> equivalence;  ///< the difference, within the margin of the losses
  Branches branches;
  std::vector<Test> tests;              ///< about the setups: repeats, branches, published noise
  std::vector<double> envelope_tokens;  ///< |difference| of repeats to their compared run …
  std::vector<double> envelope;         ///< … the largest at that many tokens
  std::string to_run;                   ///< what is missing; empty: nothing
  /// Tagged runs that are not in the spread, and why: one sentence each.
  std::vector<std::string> lost;
  /// Why the spread may not be that of the compared setups, as the end of "equivalence is not
  /// certified, as".
  std::vector<std::string> caps;
};

/// Chooses the repeats of each side and tests the sides. Taken is a tagged run that side_of()
/// gives to a side, whose record is sound, with model, data and settings of that side, and with the
/// stretch; of equal runs one. Runs of one seed count as one, unless all have it: then the seed is
/// not what they vary in. Seeds that both sides have are paired where that leaves no side with less
/// than it has unpaired, or four pairs at least; otherwise the sides are tested by Welch.
NoiseFloor noise_floor(const store::RecordedRun& a, const store::RecordedRun& b,
                       const std::vector<Candidate>& candidates, const Stretch& stretch);

/// Tests the difference of the runs, where there is one, against `margin` (nats).
void test_repeats(NoiseFloor& noise, double margin);

/// Mean loss at the tokens of the stretch that the run has.
double mean_loss(const store::RecordedRun& run, const Stretch& stretch);

}  // namespace olmo::report
