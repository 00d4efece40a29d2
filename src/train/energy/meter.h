#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "store/run_db.h"
#include "train/energy/channel.h"

namespace olmo::train {

/// Measures the energy of one attempt from its construction to finish(), in a thread of its own
/// that opens the sensors and reads them once a second. It computes nothing that training sees. The
/// database belongs to the thread that trains, which calls record() now and then.
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
  void run(const EnergySources& sources);
  bool wait_until(std::chrono::steady_clock::time_point next);
  void end_thread();

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;                      ///< guarded by mutex_, as what follows
  std::vector<store::EnergyRecord> energy_;  ///< what record() has not seen yet
  std::vector<store::PowerSample> power_;
  std::thread thread_;
};

}  // namespace olmo::train
