#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "report/evaluations/evaluation_match.h"
#include "report/evaluations/task_comparison.h"

namespace olmo::report {

/// The share of the unchanged choices whose margins move by at most flip_noise: not all, so that a
/// few instances that a bug moves far cannot explain flips.
inline constexpr double kNoiseShare = 0.999;

/// How far numeric noise moves a margin of this task: the kNoiseShare quantile of |margin_b -
/// margin_a| over the instances for which both sides chose the same option. 0 without one.
double flip_noise(const TaskPair& task);

/// A flip takes the chosen option's lead over the other side's choice, at least margin_a, to at
/// most -margin_b: a movement of margin_a + margin_b at least. It is explained where that is at
/// most twice the noise, twice for the tail beyond the quantile; without noise never.
bool explains(double noise, const InstancePair& instance);

/// A flip that is not yet written out.
struct FlipPlace {
  const TaskPair* task;
  InstancePair instance;
  bool explained = false;
};

/// Unexplained ones first, then by largest margin_a + margin_b, at most kListedFlips.
std::vector<Flip> list_flips(std::vector<FlipPlace> places);

/// The log-likelihoods of one instance, by option.
std::span<const double> logprobs_of(const EvaluatedTask& task, const EvaluatedInstance& instance);

}  // namespace olmo::report
