#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/energy_formula.h"
#include "report/recorded_run.h"

namespace olmo::report {

/// configs/clusters/NAME.json: facts of a machine that no sensor tells, each with its source.
struct Cluster {
  std::string name;    ///< "" without a file
  std::string device;  ///< e.g. "AMD MI250X (one GCD)"
  Quantity devices_per_node;
  std::string devices_per_node_source;
  Quantity peak_flops;  ///< FLOP/s of one device
  std::string peak_source;
  Quantity pue;
  std::string pue_source;
  Quantity kg_per_kwh;  ///< location-based carbon intensity
  std::string kg_per_kwh_source;
  Quantity kg_per_kwh_market;  ///< of the power that was contracted for
  std::string kg_per_kwh_market_source;
  Quantity price_per_device_hour;
  std::string currency, price_source;
};

/// Throws Error(kUsage) naming file and key: unknown keys, wrong types, values out of range, and
/// facts without a source; Error(kInput) for a file that is no JSON.
Cluster read_cluster(const std::string& path);

/// What a run cost. Absent: not measured or not stated, never 0.
struct Efficiency {
  Cluster cluster;
  std::string device;  ///< as recorded
  Quantity devices;
  Quantity tokens, train_seconds;  ///< steps that survived
  Quantity attempt_seconds;        ///< all attempts, with evaluation, saving and redone steps
  Quantity redone_seconds;         ///< steps that a resume replaced; absent after a resume
  Quantity tokens_per_second;      ///< median over the steps, all devices
  Quantity tokens_per_second_per_device;
  Quantity flops_per_token;  ///< as the run's record of MFU: formula in `flops_formula`
  std::string flops_formula;
  Quantity peak_flops;      ///< of one device
  std::string peak_source;  ///< how it is known, or why not
  Quantity mfu;
  std::string mfu_note;   ///< why it cannot be right; empty if it can
  Quantity device_hours;  ///< of all attempts; of the steps where there are no attempts
  /// Of the equipment, over all attempts, by the widest coverage that any of them measured: node,
  /// else job, else packages and devices together.
  Quantity joules;
  std::string energy_method;  ///< source and coverage, or why there is none
  Quantity energy_coverage;   ///< measured seconds / seconds of all attempts, mean of the sensors
  Quantity kwh, facility_kwh;
  Quantity carbon_kg, carbon_kg_market;  ///< location-based, market-based
  Quantity tokens_per_joule, cost;
  std::vector<RecordedEnergy> sources;  ///< all, summed over attempts
};

Efficiency efficiency_of(const RecordedRun& run, const Cluster& cluster);

}  // namespace olmo::report
