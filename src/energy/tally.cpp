#include "energy/tally.h"

#include <algorithm>
#include <cmath>

namespace olmo::energy {

EnergyTally::EnergyTally(EnergyChannel channel) : channel_(std::move(channel)) {}

std::optional<double> EnergyTally::between(const Reading& before, const Reading& after) const {
  const double seconds = after.seconds - before.seconds;
  double joules = channel_.kind == EnergyChannel::Kind::kPower
                      ? (before.value + after.value) / 2 * seconds
                      : after.value - before.value;
  if (joules < 0) joules += channel_.wraps_at;
  return joules >= 0 && joules <= kMostWatts * std::max(1.0, seconds) ? std::optional(joules)
                                                                      : std::nullopt;
}

void EnergyTally::sample(double seconds) {
  if (!channel_.read) return;
  const auto value = channel_.read();
  if (!value || !(std::isfinite(*value) && *value >= 0)) {
    // A counter goes on by itself; what power was meanwhile nobody knows.
    if (channel_.kind == EnergyChannel::Kind::kPower) last_.reset();
    return;
  }
  samples_ += 1;
  const Reading now{seconds, *value};
  if (last_) {
    if (const auto joules = between(*last_, now)) {
      joules_ += *joules;
      seconds_ += now.seconds - last_->seconds;
    } else {
      resets_ += 1;
    }
  }
  last_ = now;
}

std::optional<store::PowerSample> EnergyTally::power() {
  if (!last_ || !(seconds_ > told_seconds_)) return std::nullopt;
  store::PowerSample sample{.seconds = last_->seconds,
                            .source = channel_.source,
                            .device = channel_.device,
                            .watts = (joules_ - told_joules_) / (seconds_ - told_seconds_)};
  told_joules_ = joules_;
  told_seconds_ = seconds_;
  return sample;
}

store::EnergyRecord EnergyTally::record() const {
  store::EnergyRecord row{.source = channel_.source,
                          .device = channel_.device,
                          .covers = channel_.covers,
                          .samples = samples_,
                          .note = channel_.note};
  if (joules_ > 0) {
    row.joules = joules_;
    row.seconds = seconds_;
  } else if (channel_.read) {
    row.note += samples_ < 2 ? "; not read twice yet" : "; it has not moved";
  }
  if (resets_ > 0)
    row.note += "; without " + std::to_string(resets_) + " intervals in which it was reset";
  return row;
}

}  // namespace olmo::energy
