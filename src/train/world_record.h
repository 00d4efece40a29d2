// Who trains, where the time of their steps goes, and what energy their hosts take: the tables
// `ranks`, `phases`, `energy` and `power_samples`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/compute/policy.h"
#include "dist/communicator.h"
#include "energy/meter.h"
#include "train/agreement.h"
#include "train/recorder.h"

namespace olmo::train {

/// What a rank says of itself.
struct RankFacts {
  std::string host;
  std::string machine;  ///< of which host is the name: containers on one machine have other names
  std::int64_t pid = 0;
  std::string device;     ///< as the policy names it
  std::string processor;  ///< its model
  int threads = 1;
};

/// Those of all ranks, by rank; their sums are 0. `local_rank` counts the ranks of a machine. Hosts
/// of equal names that are different machines get a number each.
std::vector<store::RankRecord> describe_ranks(const std::vector<RankFacts>& facts);
/// Of the ranks that call it, under `policy` here.
std::vector<store::RankRecord> describe_world(dist::Communicator& ranks, const Policy& policy);
/// Ranks on the machine of `rank`, itself included.
int ranks_beside(const std::vector<store::RankRecord>& world, int rank);

/// Adds up what the ranks of an attempt report of their steps, and records it about once a minute:
/// a row for each rank, which is replaced, and a row for each phase and minute, however many ranks
/// and steps there are. The energy of a machine is read by the lowest rank on it.
class WorldRecord {
 public:
  /// `world`: what the ranks are. record() and finish() are collective.
  WorldRecord(dist::Communicator& ranks, Recorder& recorder, std::vector<store::RankRecord> world,
              energy::EnergySources sources = {});

  /// That compute: GPUs, one a rank; where processors compute, machines.
  [[nodiscard]] std::int64_t devices() const;
  /// Whether this rank is the lowest on its machine.
  [[nodiscard]] bool is_first_of_machine() const;
  /// Whether record() should be called, by this rank's clock.
  [[nodiscard]] bool is_due() const;
  /// After a step; `reports` are of all ranks, by rank.
  void add(std::int64_t step, const std::vector<StepReport>& reports);
  void record();
  /// At the end of the attempt. `together`: all ranks call it; otherwise what only they know (the
  /// energy of other hosts) stays as it was recorded last.
  void finish(bool together);

 private:
  void record_times();
  /// Of the machine of `rank`.
  void record_energy(energy::EnergyReadings readings, std::size_t rank);
  void record_energy_of_all(const energy::EnergyReadings& mine);

  dist::Communicator& ranks_;
  Recorder& recorder_;
  std::vector<store::RankRecord> sums_;  ///< by rank
  std::vector<StepTimes> interval_;      ///< sums since the last record(), by rank
  std::int64_t first_step_ = 0, steps_ = 0, last_step_ = 0;  ///< of the interval
  bool one_machine_ = true;
  std::optional<energy::EnergyMeter> meter_;
  std::chrono::steady_clock::time_point recorded_ = std::chrono::steady_clock::now();
};

}  // namespace olmo::train
