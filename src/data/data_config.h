#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace olmo::data {

/// OLMo's InstanceFilterConfig: instances with a run of period p in [min, max] repeated >=
/// max_count times are masked.
struct InstanceFilterConfig {
  std::int64_t repetition_max_period = 13;
  std::int64_t repetition_min_period = 1;
  std::int64_t repetition_max_count = 32;
};

/// The part of OLMo's DataConfig that decides what a training step sees.
struct DataConfig {
  std::vector<std::string> paths;
  std::map<std::string, std::vector<std::string>>
      datasets;                         ///< label -> files; read in the order of the labels
  std::string memmap_dtype = "uint16";  ///< uint16 | uint32
  std::vector<std::string> label_mask_paths;
  bool generate_attention_mask = false;
  bool drop_last = false;
  bool shuffle = true;  ///< ours: false reads the instances in file order
  std::optional<std::uint64_t> seed;
  std::optional<InstanceFilterConfig> instance_filter;
};

}  // namespace olmo::data
