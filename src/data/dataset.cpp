#include "data/dataset.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/process/waiting_threads.h"

namespace olmo::data {
namespace {

/// Throws Error(kInput) with a line for each of the first problems.
void fail_for(const std::vector<std::string>& problems) {
  constexpr std::size_t kShown = 10;
  if (problems.empty()) return;
  std::string text;
  for (std::size_t i = 0; i < std::min(problems.size(), kShown); ++i)
    text += (i == 0 ? "" : "\n") + problems[i];
  if (problems.size() > kShown)
    text += "\ndata: and " + std::to_string(problems.size() - kShown) + " more token files";
  throw Error(ErrorKind::kInput, text);
}

/// Throws Error(kInput) for a pattern of the shell's, which no file bears as its name.
void refuse_pattern(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return;
  if (path.find_first_of("*?") != std::string::npos)
    throw Error(ErrorKind::kInput, path +
                                       ": there is no such file; a pattern is written as "
                                       "${path.glob:" +
                                       path + "}");
}

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

Dataset::Dataset(const DataConfig& config, std::int64_t sequence_length, std::uint64_t vocab_size)
    : config_(config), sequence_length_(sequence_length), vocab_size_(vocab_size) {
  if (sequence_length_ <= 0) {
    throw Error(ErrorKind::kUsage,
                "data: sequence length must be positive, got " + std::to_string(sequence_length_));
  }
  require_none(problems_of(config_));
  add_files();
  add_label_masks();
}

void Dataset::add_files() {
  const TokenDtype dtype = parse_token_dtype(config_.memmap_dtype);
  const std::vector<std::string> paths = config_.files();
  std::vector<std::optional<TokenFile>> files(paths.size());
  std::vector<std::string> problems(paths.size());
  for_each_while_waiting(paths.size(), [&](std::size_t i) {
    try {
      refuse_pattern(paths[i]);
      files[i].emplace(paths[i], dtype);
    } catch (const Error& error) {  // collected: one does not want to be told of a file at a time
      if (error.kind() != ErrorKind::kInput) throw;
      problems[i] = error.what();
    }
  });
  std::erase(problems, "");
  fail_for(problems);
  labels_ = config_.paths;
  for (const auto& [label, named] :
       config_.datasets)  // std::map: sorted by label, bytewise as Python sorts
    labels_.insert(labels_.end(), named.size(), label);
  std::uint64_t instances = 0;
  for (auto& file : files) {
    instances += file->size() / static_cast<std::uint64_t>(sequence_length_);
    ends_.push_back(instances);
    files_.push_back(std::move(*file));
  }
}

void Dataset::add_label_masks() {
  const auto& paths = config_.label_mask_paths;
  std::vector<std::optional<MappedFile>> masks(paths.size());
  for_each_while_waiting(paths.size(), [&](std::size_t i) { masks[i].emplace(paths[i]); });
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const MappedFile& mask = masks_.emplace_back(std::move(*masks[i]));
    mask.expect_random_access();
    if (mask.bytes().size() != files_[i].size()) {
      throw Error(ErrorKind::kInput, paths[i] + ": a label mask has one byte a token, expected " +
                                         std::to_string(files_[i].size()) + " for " +
                                         files_[i].path().string() + ", got " +
                                         std::to_string(mask.bytes().size()));
    }
  }
}

InstancePlace Dataset::place(std::uint64_t instance) const {
  OLMO_CHECK(instance < size());
  const auto file = static_cast<std::size_t>(
      std::upper_bound(ends_.begin(), ends_.end(), instance) - ends_.begin());
  const std::uint64_t first = file == 0 ? 0 : ends_[file - 1];
  return {.file = file,
          .first_token = (instance - first) * static_cast<std::uint64_t>(sequence_length_)};
}

void Dataset::read(std::uint64_t instance, std::span<std::int64_t> out) const {
  OLMO_CHECK(out.size() == static_cast<std::size_t>(sequence_length_));
  const InstancePlace where = place(instance);
  const TokenFile& file = files_[where.file];
  file.read(where.first_token, out);
  if (vocab_size_ == 0) return;
  const auto largest = static_cast<std::uint64_t>(*std::max_element(out.begin(), out.end()));
  if (largest < vocab_size_) return;
  const auto position = file.find_id_beyond(vocab_size_, where.first_token, out.size());
  throw Error(ErrorKind::kInput,
              file.path().string() + ": token " + std::to_string(position.value()) + " (instance " +
                  std::to_string(instance) + ") has id " + std::to_string(file.at(*position)) +
                  ", expected ids below the vocabulary size " + std::to_string(vocab_size_) +
                  "; another tokenizer made the file, or it has another dtype than " +
                  to_string(file.dtype()));
}

void Dataset::prefetch(std::uint64_t instance) const {
  const InstancePlace where = place(instance);
  files_[where.file].prefetch(where.first_token, static_cast<std::uint64_t>(sequence_length_));
}

std::vector<std::uint8_t> Dataset::label_mask(std::uint64_t instance) const {
  OLMO_CHECK(has_label_masks());
  const InstancePlace where = place(instance);
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(sequence_length_));
  copy_mapped(masks_[where.file], where.first_token, std::as_writable_bytes(std::span(mask)));
  masks_[where.file].check_not_cut();
  return mask;
}

void Dataset::check_all_ids() const {
  if (vocab_size_ == 0) return;
  for (const TokenFile& file : files_) file.check_ids_below(vocab_size_);
}

std::vector<std::string> DataConfig::files() const {
  std::vector<std::string> all = paths;
  for (const auto& [label, more] : datasets) all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string*> DataConfig::named_files() {
  std::vector<std::string*> names;
  const auto add = [&](std::vector<std::string>& list) {
    for (auto& name : list) names.push_back(&name);
  };
  add(paths);
  for (auto& [label, more] : datasets) add(more);
  add(label_mask_paths);
  return names;
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
