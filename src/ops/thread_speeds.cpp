#include "ops/thread_speeds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace olmo::ops {
namespace {

/// Seconds of work after which two thirds of what was known is forgotten: many products, as one may
/// be interrupted, and a small part of a step.
constexpr double kMemory = 0.05;

}  // namespace

void ThreadSpeeds::learn(std::span<const Share> shares) {
  double rates = 0, known = 0, working = 0;
  for (std::size_t thread = 0; thread < shares.size(); ++thread) {
    if (!shares[thread].counts()) continue;
    rates += shares[thread].rate();
    known += speeds_[thread];
    ++working;
  }
  if (working < 2) return;  // one thread shows nothing of the others
  for (std::size_t thread = 0; thread < shares.size(); ++thread) {
    if (!shares[thread].counts()) continue;
    const double beside = std::clamp(shares[thread].rate() * working / rates, kSlowest, kFastest);
    const double learned = 1 - std::exp(-shares[thread].seconds / kMemory);
    speeds_[thread] += learned * (beside * known / working - speeds_[thread]);
  }
  const double mean =
      std::accumulate(speeds_.begin(), speeds_.end(), 0.0) / static_cast<double>(speeds_.size());
  for (double& speed : speeds_) speed = std::clamp(speed / mean, kSlowest, kFastest);
}

std::int64_t begin_of_part(std::int64_t extent, std::span<const double> weights,
                           std::int64_t index) {
  const auto sum = [&](std::int64_t parts) {
    return std::accumulate(weights.begin(), weights.begin() + parts, 0.0);
  };
  return std::lround(static_cast<double>(extent) * sum(index) /
                      sum(static_cast<std::int64_t>(weights.size())));
}

}  // namespace olmo::ops
