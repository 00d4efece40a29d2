#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config_checks.h"

namespace olmo::data {

inline constexpr std::array<std::string_view, 2> kMemmapDtypes = {"uint16", "uint32"};

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
  bool drop_last = false;  ///< without effect: a rest smaller than a batch is never seen
  bool shuffle = true;     ///< ours: false reads the instances in file order
  std::optional<std::uint64_t> seed;
  std::optional<InstanceFilterConfig> instance_filter;

  /// Every token file: `paths`, or the files of `datasets` in the order of the labels.
  [[nodiscard]] std::vector<std::string> files() const;
};

/// Contradictions, numbers out of range, files that are URLs. That no file is named blocks a start.
std::vector<ConfigProblem> problems_of(const DataConfig& config);

/// Everything that decides which tokens a step sees. B is global_batch_size, L sequence_length.
struct BatchConfig {
  DataConfig data;  ///< `data.seed`, if set, wins over `seed`
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;  ///< of step 1
  std::int64_t sequence_length = 0;
  std::int64_t global_batch_size = 0;
  std::uint64_t vocab_size = 0;  ///< ids must be below it; 0: not checked
};

}  // namespace olmo::data
