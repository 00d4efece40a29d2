#include "report/cost/cluster.h"

#include <cmath>
#include <string>

#include "core/error.h"

namespace olmo::report {
namespace {

constexpr double kJoulesPerMegawattHour = 3.6e9;
constexpr double kSecondsPerHour = 3600;

void check(Quantity quantity, const char* name, double least = 0) {
  if (quantity && !(*quantity >= least && std::isfinite(*quantity)))
    throw Error(ErrorKind::kInput, std::string("energy: ") + name +
                                       " must be finite and at least " + std::to_string(least) +
                                       ", is " + std::to_string(*quantity));
}

Quantity times(Quantity a, Quantity b) { return a && b ? Quantity(*a * *b) : std::nullopt; }

Quantity over(Quantity a, Quantity b, const char* name) {
  if (b && *b == 0)
    throw Error(ErrorKind::kInput, std::string("energy: ") + name +
                                       " must be above 0; what was not measured is left out");
  return a && b ? Quantity(*a / *b) : std::nullopt;
}

}  // namespace

Quantity megawatt_hours(Quantity joules) {
  check(joules, "the energy");
  return times(joules, 1 / kJoulesPerMegawattHour);
}

Quantity facility_energy(Quantity it_energy, Quantity pue) {
  check(it_energy, "the energy");
  check(pue, "PUE", 1);
  return times(it_energy, pue);
}

Quantity carbon_tonnes(Quantity it_energy_mwh, Quantity pue, Quantity kg_per_kwh) {
  check(kg_per_kwh, "the carbon intensity");
  return times(facility_energy(it_energy_mwh, pue), kg_per_kwh);
}

Quantity tokens_per_joule(Quantity tokens, Quantity joules) {
  check(tokens, "the number of tokens");
  check(joules, "the energy");
  return over(tokens, joules, "the energy");
}

Quantity model_flops_utilisation(Quantity tokens_per_second, Quantity flops_per_token,
                                 Quantity devices, Quantity peak_flops_per_device) {
  check(tokens_per_second, "the rate");
  check(flops_per_token, "the work of a token");
  check(devices, "the number of devices");
  check(peak_flops_per_device, "the peak of a device");
  return over(times(tokens_per_second, flops_per_token), times(devices, peak_flops_per_device),
              "the peak of all devices");
}

Quantity device_hours(Quantity seconds, Quantity devices) {
  check(seconds, "the duration");
  check(devices, "the number of devices");
  return times(times(seconds, devices), 1 / kSecondsPerHour);
}

Quantity cost(Quantity hours, Quantity price_per_device_hour) {
  check(hours, "the device hours");
  check(price_per_device_hour, "the price");
  return times(hours, price_per_device_hour);
}

}  // namespace olmo::report
