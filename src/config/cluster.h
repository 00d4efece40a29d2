// Facts of a cluster that no sensor tells.
#pragma once

#include <optional>
#include <string>

namespace olmo::config {

/// Absent: neither measured nor stated.
using Quantity = std::optional<double>;

/// configs/clusters/NAME.json: facts of a machine that no sensor tells, each with its source.
struct Cluster {
  std::string name;    ///< "" without a file
  std::string device;  ///< e.g. "AMD MI250X (one GCD)"
  Quantity devices_per_node;
  std::string devices_per_node_source;
  Quantity peak_flops;  ///< FLOP/s of one device
  std::string peak_source;
  Quantity efficiency;  ///< share of the peak that a pass reaches while it waits for no other rank
  std::string efficiency_source;
  Quantity memory_bytes;  ///< of one device
  std::string memory_source;
  Quantity node_memory_bytes;  ///< of a node beside its devices: its processors'
  std::string node_memory_source;
  Quantity node_bytes_per_second;  ///< that a device sends to the others of its node
  std::string node_source;
  Quantity network_bytes_per_second;  ///< that a device sends to other nodes, when all do
  std::string network_source;
  Quantity latency_seconds;  ///< of a collective, before its first byte
  std::string latency_source;
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
/// facts without a source; and a file that is not there or no JSON.
Cluster read_cluster(const std::string& path);

}  // namespace olmo::config
