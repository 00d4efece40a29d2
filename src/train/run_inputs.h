#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "data/dataset.h"
#include "data/tokenizer.h"
#include "store/run_records.h"
#include "train/train_config.h"

namespace olmo::train {

/// Digests of the files that decide the result: token files, label masks, tokenizer. Token files
/// are hashed whole up to 8 GiB in all; beyond that by size and evenly spaced samples (`sampled:`
/// before the digest), since hashing a released data set would take longer than many a run.
std::vector<store::InputRecord> describe_inputs(
    const data::Dataset& dataset, const std::vector<std::filesystem::path>& label_masks,
    const std::optional<std::filesystem::path>& tokenizer);
/// The same of the weights to start from, a file or the files of a folder.
std::vector<store::InputRecord> describe_weights(const std::filesystem::path& weights);

/// Throws Error(kInput) with both values if a token file that was hashed whole has another SHA-256
/// than its sidecar says.
void require_sidecars_agree(const std::vector<store::InputRecord>& inputs);

/// The tokenizer.json that `tokenizer.identifier` means: the file of that path, else among those
/// that `data fetch` has unpacked the one of that file name, or of that hub name
/// (`allenai/gpt-neox-olmo-dolma-v1_5` is allenai_gpt-neox-olmo-dolma-v1_5.json); nothing if there
/// is none here.
std::optional<std::filesystem::path> find_tokenizer(const std::string& identifier);

/// What a tokenizer is checked by; `name` stands for it in messages.
TokenizerFacts describe_tokenizer(const data::Tokenizer& tokenizer, const std::string& name);

/// The tokenizer that a config names, and what the run record must note of it.
struct NamedTokenizer {
  std::optional<std::filesystem::path> path;
  std::optional<std::string> note;
};

/// Finds the tokenizer and checks it against the config (check_tokenizer, which says what it
/// throws); one that is not here is noted.
NamedTokenizer check_named_tokenizer(const TrainConfig& config);

}  // namespace olmo::train
