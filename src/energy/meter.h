#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "energy/channel.h"
#include "store/run_db.h"

namespace olmo::energy {

/// Measures the energy of one attempt from its construction to finish(), in a thread of its own
/// that opens the sensors and reads them once a second. It computes nothing that training sees. The
/// database belongs to the thread that trains, which calls record() now and then. A sensor or
/// driver that never answers costs its figures and EnergySources::patience, not the training: its
/// thread is left behind.
class EnergyMeter {
 public:
  explicit EnergyMeter(EnergySources sources = {});
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  /// Adds what is new since the last call to the record of the run's present attempt: the power of
  /// every ten seconds, and each source's energy so far. Does not wait for a sensor.
  void record(store::RunDb& db);
  /// Reads the sensors a last time, asks Slurm, ends the thread and records the rest.
  void finish(store::RunDb& db);

 private:
  struct Shared;  // with the thread, which may outlive this object
  static void run(Shared& shared, const EnergySources& sources);
  void end_thread();

  std::shared_ptr<Shared> shared_;
  std::chrono::milliseconds patience_;
  std::thread thread_;
};

}  // namespace olmo::energy
