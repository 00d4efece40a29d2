#pragma once

#include "energy/channel.h"
#include "store/run_records.h"

namespace olmo::energy {

/// More power than any processor, device or node draws. A counter that would mean more was reset;
/// it has not passed its range.
inline constexpr double kMostWatts = 20'000;

/// The energy of one channel since its first reading.
class EnergyTally {
 public:
  explicit EnergyTally(EnergyChannel channel);

  /// Reads the channel at `seconds` of a monotonic clock.
  void sample(double seconds);
  /// Mean power since the last such call that gave one; nothing without a reading since.
  [[nodiscard]] std::optional<store::PowerSample> power();
  /// Joules are absent while nothing was measured, and where a counter has not moved: 0 is no
  /// measurement.
  [[nodiscard]] store::EnergyRecord record() const;

 private:
  struct Reading {
    double seconds = 0, value = 0;
  };
  /// Joules between two readings; nothing if the counter was reset.
  [[nodiscard]] std::optional<double> between(const Reading& before, const Reading& after) const;

  EnergyChannel channel_;
  std::optional<Reading> last_;
  double joules_ = 0, seconds_ = 0;  ///< of the intervals that were measured
  double told_joules_ = 0, told_seconds_ = 0;
  std::int64_t samples_ = 0, resets_ = 0;
};

}  // namespace olmo::energy
