// The token files of a training as numbered instances, and the config that names them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config_checks.h"
#include "core/data_position.h"
#include "data/token_file.h"

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
  bool generate_doc_lengths = false;  ///< attention keeps to documents
  std::optional<InstanceFilterConfig> instance_filter;

  /// Every token file: `paths`, or the files of `datasets` in the order of the labels.
  [[nodiscard]] std::vector<std::string> files() const;
  /// The names of all token files and label masks, for one who knows where they are now.
  [[nodiscard]] std::vector<std::string*> named_files();
};

/// Contradictions, numbers out of range, files that are URLs. That no file is named blocks a start.
std::vector<ConfigProblem> problems_of(const DataConfig& config);

/// Everything that decides which tokens a step sees. B is global_batch_size, L sequence_length.
struct BatchConfig {
  DataConfig data;  ///< `data.seed`, if set, wins over `seed`
  std::uint64_t seed = 0;
  DataPosition begin = {};  ///< where the training begins
  std::int64_t sequence_length = 0;
  std::int64_t global_batch_size = 0;
  std::uint64_t vocab_size = 0;  ///< ids must be below it; 0: not checked
  /// The token that ends a document, where attention keeps to documents.
  std::optional<std::int64_t> document_end = {};
};

/// Where an instance lies: the number of its file in config order and the position of its first
/// token there.
struct InstancePlace {
  std::size_t file = 0;
  std::uint64_t first_token = 0;
};

/// OLMo's MemMapDataset: token files in config order (`paths`, or `datasets` by sorted label), each
/// cut into instances of `sequence_length` tokens; a tail shorter than that is dropped per file.
/// Instances are numbered through all files.
class Dataset {
 public:
  /// `vocab_size`: ids are checked as they are read; 0 checks nothing. Throws Error(kUsage) for a
  /// config that contradicts itself, Error(kInput) for a bad file, naming it.
  Dataset(const DataConfig& config, std::int64_t sequence_length, std::uint64_t vocab_size = 0);

  [[nodiscard]] std::uint64_t size() const noexcept { return ends_.back(); }
  [[nodiscard]] std::int64_t sequence_length() const noexcept { return sequence_length_; }
  [[nodiscard]] const std::vector<TokenFile>& files() const noexcept { return files_; }
  [[nodiscard]] const DataConfig& config() const noexcept { return config_; }
  [[nodiscard]] bool has_label_masks() const noexcept { return !masks_.empty(); }
  /// Label of the file in `datasets`; its path if the config names `paths`.
  [[nodiscard]] const std::string& label(std::size_t file) const { return labels_.at(file); }

  [[nodiscard]] InstancePlace place(std::uint64_t instance) const;
  /// Reads the ids of one instance; `out` has sequence_length elements. Throws Error(kInput) naming
  /// file and position of an id beyond the vocabulary.
  void read(std::uint64_t instance, std::span<std::int64_t> out) const;
  /// Asks the kernel for the ids of an instance that will be read soon.
  void prefetch(std::uint64_t instance) const;
  /// Label mask of one instance, one byte a token, 0 = not a label. Only if has_label_masks().
  [[nodiscard]] std::vector<std::uint8_t> label_mask(std::uint64_t instance) const;
  /// Reads every id of every file once. Throws Error(kInput) for the first one beyond the
  /// vocabulary.
  void check_all_ids() const;

 private:
  void add_files();
  void add_label_masks();

  DataConfig config_;
  std::int64_t sequence_length_;
  std::uint64_t vocab_size_;
  std::vector<TokenFile> files_;
  std::vector<std::string> labels_;
  std::vector<MappedFile> masks_;
  std::vector<std::uint64_t> ends_;  ///< ends_[f]: number of instances in files 0..f
};

}  // namespace olmo::data
