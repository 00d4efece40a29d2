#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "config/train_config.h"
#include "data/dataset.h"
#include "data/tokenizer/tokenizer.h"
#include "store/run_records.h"

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

}  // namespace olmo::train
