// What follows from the facts of a cluster (config/cluster.h) and from what was measured.
#pragma once

#include "config/cluster.h"

namespace olmo::report {

using config::Cluster;
using config::Quantity;
using config::read_cluster;

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
