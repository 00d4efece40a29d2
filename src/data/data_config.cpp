#include "data/data_config.h"

#include <algorithm>

namespace olmo::data {
namespace {

constexpr std::int64_t kLongest = 1 << 24;

bool is_url(const std::string& path) { return path.find("://") != std::string::npos; }

void check_local(ConfigChecks& checks, const std::string& key,
                 const std::vector<std::string>& files) {
  const auto urls = std::count_if(files.begin(), files.end(), is_url);
  if (urls == 0) return;
  const auto first = std::find_if(files.begin(), files.end(), is_url);
  checks.add_unsupported(key, "names " + std::to_string(urls) + (urls == 1 ? " URL" : " URLs") +
                                  " such as " + *first + "; give local files: data." + key +
                                  "=[FILE, ...]");
}

void check_filter(ConfigChecks& checks, const InstanceFilterConfig& filter) {
  checks.between("instance_filter.repetition_min_period", filter.repetition_min_period, 1,
                 kLongest);
  checks.between("instance_filter.repetition_max_period", filter.repetition_max_period,
                 std::max<std::int64_t>(filter.repetition_min_period, 1), kLongest);
  checks.between("instance_filter.repetition_max_count", filter.repetition_max_count, 1, kLongest);
}

}  // namespace

std::vector<std::string> DataConfig::files() const {
  std::vector<std::string> all = paths;
  for (const auto& [label, more] : datasets) all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<ConfigProblem> problems_of(const DataConfig& config) {
  ConfigChecks checks("data.");
  checks.one_of("memmap_dtype", config.memmap_dtype, kMemmapDtypes);
  if (!config.paths.empty() && !config.datasets.empty())
    checks.add("paths", "and `data.datasets` exclude each other, got both");
  const auto files = config.files();
  const auto& masks = config.label_mask_paths;
  if (!masks.empty() && masks.size() != files.size()) {
    checks.add("label_mask_paths", "must name one file for each of the " +
                                       std::to_string(files.size()) + " token files, got " +
                                       std::to_string(masks.size()));
  }
  if (config.instance_filter) check_filter(checks, *config.instance_filter);
  check_local(checks, config.datasets.empty() ? "paths" : "datasets", files);
  check_local(checks, "label_mask_paths", masks);
  if (files.empty())
    checks.add_unsupported("paths", "names no token files; give data.paths=[FILE, ...]");
  return checks.take();
}

}  // namespace olmo::data
