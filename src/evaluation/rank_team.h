// The ranks of an evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include "dist/communicator.h"
#include "eval/sequence_queue.h"

namespace olmo::evaluation {

/// How ranks run forward passes at the same time, each its own. All learn the scores.
enum class RankPasses {
  kApart,   ///< each has the whole model
  kInStep,  ///< each has a part of the weights, and gathers the others' block by block, as they do
};

/// `check` is called on every rank before each forward pass; where it throws (a signal), all ranks
/// throw. `ranks` must outlive it.
eval::ScoringTeam team_of(dist::Communicator& ranks, RankPasses passes,
                          std::function<void()> check);

/// The numbers of rank 0, on every rank. Collective.
std::set<std::int64_t> numbers_of_first(dist::Communicator& ranks,
                                        const std::set<std::int64_t>& mine);

}  // namespace olmo::evaluation
