#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numbers>
#include <vector>

#include "report/stats/bootstrap.h"

// Chance for tests that count how often a rule errs: seeded, so that a test gives the same counts
// each time.

namespace olmo {

/// How many times as many samples a simulation takes: OLMO_SIMULATIONS, 1 without it.
/// scripts/verdict_simulation.sh sets it.
inline std::uint64_t simulations() {
  const char* text = std::getenv("OLMO_SIMULATIONS");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

/// Normal numbers, of mean 0 and deviation 1 (Box and Muller 1958).
class Normal {
 public:
  Normal(std::uint64_t seed, std::uint64_t stream) : draws_(seed, stream) {}

  double operator()() {
    if (kept_) {
      kept_ = false;
      return other_;
    }
    const double radius = std::sqrt(-2 * std::log(1 - draws_.uniform()));
    const double angle = 2 * std::numbers::pi * draws_.uniform();
    kept_ = true;
    other_ = radius * std::sin(angle);
    return radius * std::cos(angle);
  }
  /// Uniform in [0, 1).
  double uniform() { return draws_.uniform(); }

 private:
  report::ResampleDraws draws_;
  bool kept_ = false;
  double other_ = 0;
};

/// x[t] = rho·x[t-1] + noise, from its stationary distribution, of mean 0 and deviation 1.
inline std::vector<double> autoregression(std::uint64_t seed, std::size_t n, double rho) {
  Normal normal(99, seed);
  std::vector<double> series(n);
  double x = normal();
  for (double& value : series) {
    value = x;
    x = rho * x + std::sqrt(1 - rho * rho) * normal();
  }
  return series;
}

}  // namespace olmo
