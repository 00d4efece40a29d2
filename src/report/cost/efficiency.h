#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/cost/cluster.h"
#include "report/cost/world.h"
#include "store/runs/recorded_run.h"

namespace olmo::report {

/// What one device can do at most, by one source, and what the run made of it.
struct Peak {
  double flops = 0;  ///< FLOP/s
  std::string source;
  Quantity mfu;
};

/// What a run cost. Absent: not measured or not stated, never 0.
struct Efficiency {
  Cluster cluster;
  std::string device;  ///< as recorded
  Quantity devices;
  Quantity tokens, train_seconds;  ///< steps that survived
  Quantity attempt_seconds;        ///< all attempts, with evaluation, saving and redone steps
  Quantity redone_seconds;         ///< steps that a resume replaced
  /// Median over the steps, all devices; over the last attempt's steps where it had other devices
  /// or threads than those before.
  Quantity tokens_per_second;
  Quantity tokens_per_second_per_device;
  Quantity flops_per_token;  ///< as the run's record of MFU: formula in `flops_formula`
  std::string flops_formula;
  std::vector<Peak> peaks;  ///< of the cluster file, of the run's record: those that are known
  Quantity peak_flops;      ///< of one device: the first of them
  std::string peak_source;  ///< how it is known, or why not
  Quantity mfu;
  std::string mfu_note;   ///< why it cannot be right; empty if it can
  Quantity device_hours;  ///< of all attempts, each with its devices; else of the steps
  /// Why the seconds of attempts and the hours are at least that many; empty: they are exact.
  std::string hours_note;
  /// Of the equipment, over all attempts: of each host by the widest coverage that the attempt
  /// measured there (node, else packages and devices together), and added; where a host has no
  /// node's counter, but Slurm knows the job, the job's, which holds all hosts.
  Quantity joules;
  std::string energy_method;  ///< source and coverage, or why there is none
  /// Measured seconds / seconds of all attempts, mean of the hosts and of each one's sensors.
  Quantity energy_coverage;
  Quantity kwh, facility_kwh;
  Quantity carbon_kg, carbon_kg_market;  ///< location-based, market-based
  Quantity tokens_per_joule;             ///< absent where much of the time was not measured
  Quantity cost;
  std::vector<store::EnergyRecord> sources;  ///< all, summed over attempts
  World world;
};

/// MFU that a token per second is in an attempt, by the peak that its record tells; nothing where
/// it does not.
Quantity mfu_of_one_token(const store::RecordedRun& run, const store::AttemptRecord& attempt);

Efficiency efficiency_of(const store::RecordedRun& run, const Cluster& cluster);

}  // namespace olmo::report
