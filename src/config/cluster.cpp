#include "config/cluster.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/file.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/text/text.h"

namespace olmo::config {
namespace {

/// A fact of the file with its source beside it, and the least that it may be.
struct Fact {
  const char* key;
  Quantity Cluster::*value;
  std::string Cluster::*source;
  double least;
  double most = 1e18;  ///< a plan counts bytes in 64 bits
};

const std::vector<Fact>& facts() {
  static const std::vector<Fact> kFacts = {
      {"devices_per_node", &Cluster::devices_per_node, &Cluster::devices_per_node_source, 1,
       65'536},
      {"peak_flops", &Cluster::peak_flops, &Cluster::peak_source, 1},
      {"efficiency", &Cluster::efficiency, &Cluster::efficiency_source, 0},
      {"memory_bytes", &Cluster::memory_bytes, &Cluster::memory_source, 1},
      {"node_memory_bytes", &Cluster::node_memory_bytes, &Cluster::node_memory_source, 1},
      {"node_bytes_per_second", &Cluster::node_bytes_per_second, &Cluster::node_source, 1},
      {"network_bytes_per_second", &Cluster::network_bytes_per_second, &Cluster::network_source, 1},
      {"latency_seconds", &Cluster::latency_seconds, &Cluster::latency_source, 0},
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
  explicit ClusterFile(std::string path)
      : path_(std::move(path)),
        json_(parse_strict_json(
            read_config_text(path_),
            {.where = path_, .kind = ErrorKind::kUsage, .is_file = true, .is_object = true})) {}

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
    if (found->get<double>() > fact.most)
      fail(fact.key, formatted("must be at most %g, is ", fact.most) + found->dump().substr(0, 40));
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
  if (cluster.devices_per_node &&
      std::floor(*cluster.devices_per_node) != *cluster.devices_per_node)
    file.fail("devices_per_node", "must be a whole number");
  if (cluster.efficiency && !(*cluster.efficiency > 0 && *cluster.efficiency <= 1))
    file.fail("efficiency", "must be above 0 and at most 1");
  if (cluster.price_per_device_hour && cluster.currency.empty())
    file.fail("price_per_device_hour", "needs `currency`");
  return cluster;
}

}  // namespace olmo::config
