// The ranks that trained a run: how many, where, where their time went, and which held up the
// others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/runs/recorded_run.h"

namespace olmo::report {

/// Seconds of a step that a phase took, as a mean over the steps of all attempts.
struct PhaseTime {
  std::string phase;
  double mean = 0;   ///< over the ranks
  double least = 0;  ///< of the ranks, of each minute
  double most = 0;
};

/// The rank whose own work (data and compute) was the longest most often, in one attempt.
struct SlowestRank {
  std::int64_t rank = 0;
  std::string host;
  std::int64_t steps = 0;     ///< in which it was
  std::int64_t of_steps = 0;  ///< of the attempt
  double longer = 0;          ///< its own work over the mean of all ranks, minus 1
};

/// "rank 2 on nid007, in 90 of 100 steps; its own work takes 4 % longer than the mean".
std::string to_text(const SlowestRank& slowest);

struct World {
  std::vector<std::string> attempts;  ///< "3 ranks on 1 host, FULL_SHARD, --nproc"; alike ones once
  std::vector<PhaseTime> phases;      ///< in the order of a step; empty: not recorded
  std::optional<SlowestRank> slowest;  ///< of the last attempt, if it had several ranks
  /// That all ranks of the last attempt sent, in the mean; absent: their rows are not known.
  std::optional<std::int64_t> bytes_of_step;
  std::vector<store::RankRecord> ranks;  ///< of the last attempt
};

World world_of(const store::RecordedRun& run);

/// "3 ranks on 1 host, FULL_SHARD, --nproc"; empty: not known.
std::string describe_attempt(const store::AttemptRecord& attempt,
                             const std::vector<store::RankRecord>& ranks);

}  // namespace olmo::report
