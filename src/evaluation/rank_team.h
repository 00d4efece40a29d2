// The ranks of an evaluation: each has the whole model and runs a part of the forward passes.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include "dist/communicator.h"
#include "eval/sequence_queue.h"

namespace olmo::evaluation {

/// `check` is called on every rank before each forward pass; where it throws (a signal), all ranks
/// throw. `ranks` must outlive it.
eval::ScoringTeam team_of(dist::Communicator& ranks, std::function<void()> check);

/// The numbers of rank 0, on every rank. Collective.
std::set<std::int64_t> numbers_of_first(dist::Communicator& ranks,
                                        const std::set<std::int64_t>& mine);

}  // namespace olmo::evaluation
