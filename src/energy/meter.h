#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "energy/channel.h"
#include "store/runs/run_records.h"

namespace olmo::energy {

/// Rows for the record of an attempt.
struct EnergyReadings {
  std::vector<store::EnergyRecord> energy;
  std::vector<store::PowerSample> power;
};

/// Measures the energy of one attempt from its construction to finish(), in a thread of its own
/// that opens the sensors and reads them once a second. It computes nothing that training sees. The
/// database belongs to the thread that trains, which calls take() now and then. A sensor or
/// driver that never answers costs its figures and EnergySources::patience, not the training: its
/// thread is left behind.
class EnergyMeter {
 public:
  explicit EnergyMeter(EnergySources sources = {});
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  /// What is new since the last call: the power of every ten seconds, and each source's energy so
  /// far. Does not wait for a sensor.
  EnergyReadings take();
  /// Reads the sensors a last time, asks Slurm, ends the thread and returns the rest.
  EnergyReadings finish();

 private:
  struct Shared;  // with the thread, which may outlive this object
  static void run(Shared& shared, const EnergySources& sources);
  void end_thread();

  std::shared_ptr<Shared> shared_;
  std::chrono::milliseconds patience_;
  std::thread thread_;
};

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

/// The energy of this job as Slurm's accounting (sacct) tells it, asked once when an attempt ends.
/// `job`: its number, as in SLURM_JOB_ID; nothing, if no job runs this. `sacct`: the program to
/// ask. Takes a few seconds at most. Slurm counts the job from its start, with all its attempts and
/// nodes.
store::EnergyRecord ask_slurm(const std::optional<std::string>& job, const std::string& sacct);

}  // namespace olmo::energy
