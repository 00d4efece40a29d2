#include "report/cluster.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace olmo::report {
namespace {

/// A fact of the file with its source beside it, and the least that it may be.
struct Fact {
  const char* key;
  Quantity Cluster::*value;
  std::string Cluster::*source;
  double least;
};

const std::vector<Fact>& facts() {
  static const std::vector<Fact> kFacts = {
      {"devices_per_node", &Cluster::devices_per_node, &Cluster::devices_per_node_source, 1},
      {"peak_flops", &Cluster::peak_flops, &Cluster::peak_source, 1},
      {"pue", &Cluster::pue, &Cluster::pue_source, 1},
      {"kg_per_kwh", &Cluster::kg_per_kwh, &Cluster::kg_per_kwh_source, 0},
      {"kg_per_kwh_market", &Cluster::kg_per_kwh_market, &Cluster::kg_per_kwh_market_source, 0},
      {"price_per_device_hour", &Cluster::price_per_device_hour, &Cluster::price_source, 0},
  };
  return kFacts;
}

std::string source_key(const Fact& fact) { return std::string(fact.key) + "_source"; }

/// One cluster file on its way to a Cluster.
class ClusterFile {
 public:
  explicit ClusterFile(std::string path) : path_(std::move(path)), json_(read_json_file(path_)) {
    if (!json_.is_object()) throw Error(ErrorKind::kUsage, path_ + ": must hold a JSON object");
  }

  void require_known_keys() const {
    std::vector<std::string> known = {"name", "device", "currency"};
    for (const auto& fact : facts()) {
      known.emplace_back(fact.key);
      known.push_back(source_key(fact));
    }
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const auto meant = nearest(key, known);
      fail(key, "is unknown" + (meant ? "; did you mean `" + *meant + "`?" : std::string()));
    }
  }

  [[nodiscard]] std::string text(const std::string& key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return "";
    if (!found->is_string() || found->get_ref<const std::string&>().empty())
      fail(key, "must be text that is not empty");
    return found->get<std::string>();
  }

  void read(const Fact& fact, Cluster& cluster) const {
    const auto found = json_.find(fact.key);
    cluster.*fact.source = text(source_key(fact));
    if (found == json_.end()) {
      if (!(cluster.*fact.source).empty()) fail(source_key(fact), "is the source of nothing");
      return;
    }
    if (!found->is_number() || found->get<double>() < fact.least)
      fail(fact.key, "must be a number, at least " + std::to_string(static_cast<int>(fact.least)) +
                         ", is " + found->dump().substr(0, 40));
    if ((cluster.*fact.source).empty()) fail(fact.key, "needs `" + source_key(fact) + "`");
    cluster.*fact.value = found->get<double>();
  }

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw Error(ErrorKind::kUsage, path_ + ": `" + key + "` " + what);
  }

 private:
  std::string path_;
  Json json_;
};

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

Cluster read_cluster(const std::string& path) {
  const ClusterFile file(path);
  file.require_known_keys();
  Cluster cluster;
  cluster.name = file.text("name");
  cluster.device = file.text("device");
  cluster.currency = file.text("currency");
  if (cluster.name.empty()) file.fail("name", "is missing");
  for (const auto& fact : facts()) file.read(fact, cluster);
  if (cluster.price_per_device_hour && cluster.currency.empty())
    file.fail("price_per_device_hour", "needs `currency`");
  return cluster;
}

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
