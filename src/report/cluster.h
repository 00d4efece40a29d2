// Facts of a machine that no sensor tells, and what follows from them and from what was measured.
#pragma once

#include <optional>
#include <string>

namespace olmo::report {

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

// Where a quantity is absent, so is everything that needs it: never 0. These throw Error(kInput)
// for a negative or non-finite number, a PUE below 1, and a 0 where a measured quantity divides.

/// Joules as megawatt hours (1 MWh = 3.6e9 J).
Quantity megawatt_hours(Quantity joules);

/// What the site drew: the equipment's energy times the power usage effectiveness, in the unit of
/// `it_energy`.
Quantity facility_energy(Quantity it_energy, Quantity pue);

/// Tonnes of CO2 equivalent: MWh × PUE × kg/kWh (Groeneveld et al., "OLMo: Accelerating the science
/// of language models", 2024, appendix B; the thousands of MWh/kWh and t/kg cancel).
/// `it_energy_mwh` is before PUE.
Quantity carbon_tonnes(Quantity it_energy_mwh, Quantity pue, Quantity kg_per_kwh);

/// Tokens trained on per joule of the equipment's energy.
Quantity tokens_per_joule(Quantity tokens, Quantity joules);

/// Model FLOP utilisation (Chowdhery et al., "PaLM", 2022, appendix B): tokens/s × model FLOP per
/// token / (devices × peak FLOP/s of one device). Recomputation does not count.
Quantity model_flops_utilisation(Quantity tokens_per_second, Quantity flops_per_token,
                                 Quantity devices, Quantity peak_flops_per_device);

/// Devices times hours.
Quantity device_hours(Quantity seconds, Quantity devices);

/// Price of the device hours, in the currency of `price_per_device_hour`.
Quantity cost(Quantity device_hours, Quantity price_per_device_hour);

}  // namespace olmo::report
