#include <nlohmann/json.hpp>

#include "config/cluster.h"
#include "config/file.h"
#include "fuzz/target.h"
#include "models/hf_config.h"
#include "models/olmo_core_config.h"
#include "store/checkpoint/checkpoint_manifest.h"

namespace olmo::fuzz {
namespace {

void parse_config(const std::string& input, const std::string& name) {
  auto document = config::parse_config_document(input, name);
  // Globs would walk the disk of whoever runs this.
  if (input.find("path.") != std::string::npos) return;
  (void)config::read_document(std::move(document), config::is_yaml_name(name), {"seed=7"});
}

void parse_json_config(const std::string& input) { parse_config(input, "fuzzed.json"); }
void parse_yaml_config(const std::string& input) { parse_config(input, "fuzzed.yaml"); }

/// The text of an override.
void parse_override(const std::string& input) {
  auto document = config::parse_config_document("{\"model\": {\"d_model\": 64}}", "fuzzed.json");
  if (input.find("path.") != std::string::npos) return;
  (void)config::read_document(std::move(document), false, {input});
}

void parse_cluster(const std::string& input) {
  (void)config::read_cluster(file_of(input, "cluster.json").string());
}

void parse_hf(const std::string& input) {
  const Json json = store::parse_untrusted(input, "config.json");
  (void)models::parse_hf_config(json, "config.json");
}

void parse_olmo_core(const std::string& input) {
  const Json json = store::parse_untrusted(input, "config.json");
  if (models::is_olmo_core_config(json)) (void)models::parse_olmo_core_config(json, "config.json");
}

}  // namespace

std::vector<Target> train_targets() {
  return {
      {"config_json", 1 << 12, parse_json_config,
       [] { return files_below("configs/train", ".json"); }},
      {"config_yaml", 1 << 13, parse_yaml_config,
       [] { return files_below("tests/data/train", ".yaml"); }},
      {"override", 256, parse_override,
       [] {
         return std::vector<std::string>{"model.n_heads=4", "data.paths=[a,b]",
                                         "optimizer={name: adamw, betas: [0.9, 0.95]}",
                                         "run_name=${oc.env:HOME,x}", "--seed=1"};
       }},
      {"cluster", 1 << 12, parse_cluster, [] { return files_below("configs/clusters", ".json"); }},
      {"hf_config", 1 << 12, parse_hf,
       [] { return files_below("tests/data/train/hf", "config.json"); }},
      {"olmo_core_config", 1 << 13, parse_olmo_core,
       [] { return files_below("tests/data/train/olmo_core", "config.json"); }}};
}

}  // namespace olmo::fuzz
