#include "report/cost/cluster.h"

#include <cmath>

#include "core/error.h"
#include "support/catch.h"

namespace olmo::report {

TEST_CASE("the carbon of OLMo's two clusters is that of the paper", "[report]") {
  // A100-40GB: 104 MWh; MI250X: 135 MWh at LUMI, with hydroelectric power as 0 and as 0.024 kg/kWh.
  CHECK(carbon_tonnes(104, 1.1, 0.610).value() == Approx(69.784).epsilon(1e-12));
  CHECK(carbon_tonnes(135, 1.1, 0.0).value() == 0);
  CHECK(carbon_tonnes(135, 1.1, 0.024).value() == Approx(3.564).epsilon(1e-12));
  CHECK(facility_energy(239, 1.1).value() == Approx(262.9));
}

TEST_CASE("what was not measured leaves everything absent that needs it", "[report]") {
  CHECK_FALSE(carbon_tonnes(std::nullopt, 1.1, 0.6));
  CHECK_FALSE(carbon_tonnes(104, std::nullopt, 0.6));
  CHECK_FALSE(carbon_tonnes(104, 1.1, std::nullopt));
  CHECK_FALSE(megawatt_hours(std::nullopt));
  CHECK_FALSE(tokens_per_joule(1e9, std::nullopt));
  CHECK_FALSE(model_flops_utilisation(1e4, 6e9, std::nullopt, 312e12));
  CHECK_FALSE(cost(std::nullopt, 2.0));
  CHECK_FALSE(device_hours(3600, std::nullopt));
}

TEST_CASE("energy, utilisation and cost follow their formulas", "[report]") {
  CHECK(megawatt_hours(3.6e9).value() == Approx(1));
  CHECK(tokens_per_joule(5e9, 2.5e9).value() == Approx(2));
  CHECK(model_flops_utilisation(8 * 3000.0, 42e9, 8, 312e12).value() ==
        Approx(0.40385).epsilon(1e-4));
  CHECK(device_hours(7200, 16).value() == Approx(32));
  CHECK(cost(32, 1.5).value() == Approx(48));
}

TEST_CASE("impossible energies are refused", "[report]") {
  CHECK_THROWS_AS(carbon_tonnes(-1, 1.1, 0.6), Error);
  CHECK_THROWS_AS(carbon_tonnes(1, 0.9, 0.6), Error);
  CHECK_THROWS_AS(carbon_tonnes(1, 1.1, std::nan("")), Error);
  CHECK_THROWS_AS(tokens_per_joule(1e9, 0), Error);
  CHECK_THROWS_AS(model_flops_utilisation(1, 1, 1, 0), Error);
  CHECK_THROWS_AS(model_flops_utilisation(1, 1, INFINITY, 1), Error);
  CHECK_THROWS_AS(cost(1, -2), Error);
}

}  // namespace olmo::report
