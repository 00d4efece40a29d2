// Short trainings of both sides from the same checkpoints: what each machine makes of one state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/claims/claim.h"
#include "report/training/assignment.h"

namespace olmo::report {

/// Two branches from one state that read the same batches.
struct BranchPair {
  std::string start;           ///< first digits of the digest over the state's hashes
  std::int64_t from_step = 0;  ///< of the checkpoint
  std::int64_t steps = 0;      ///< that both have after it
  std::string run_a, run_b;    ///< ids
  double difference = 0;       ///< B minus A: mean loss of the last tenth, of 20 steps at least
  bool equal_bits = false;     ///< of all losses
};

/// A branch without a partner.
struct UnpairedBranch {
  std::optional<char> side;
  std::string run_id, reason;  ///< one sentence without its full stop
};

struct Branches {
  std::vector<BranchPair> pairs;  ///< by start and run
  std::vector<UnpairedBranch> unpaired;
  std::optional<Test> test;  ///< paired t, from two pairs on
};

/// Digest over all hashes of the state that the run began from; empty: it was not recorded.
std::string start_digest(const store::RecordedRun& run);

/// Pairs runs of equal starts and equal batches; of equal runs of a side one. Each pair is a
/// replicate of its own, from which all that the sides have in common drops out.
Branches pair_branches(const std::vector<const store::RecordedRun*>& a,
                       const std::vector<const store::RecordedRun*>& b);

/// The branches among the compared runs and the candidates, each on the side that side_of() gives
/// it, if model, data and settings are that side's.
Branches find_branches(const store::RecordedRun& a, const store::RecordedRun& b,
                       const std::vector<Candidate>& candidates);

}  // namespace olmo::report
