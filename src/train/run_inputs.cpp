#include "train/run_inputs.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "data/public/fetch.h"
#include "data/sidecar.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kHashWholeUpTo = std::uint64_t{8} << 30;
constexpr std::uint64_t kSampleBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kSamples = 64;
constexpr char kSampled[] = "sampled:";

std::string sampled_digest(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update_u64(bytes.size());
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const std::uint64_t at =
        (bytes.size() - std::min<std::uint64_t>(kSampleBytes, bytes.size())) / (kSamples - 1) * i;
    hash.update(bytes.data() + at, std::min<std::uint64_t>(kSampleBytes, bytes.size() - at));
  }
  return kSampled + hash.finish().hex();
}

store::InputRecord describe(const std::string& kind, const fs::path& path, bool whole) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return {kind, fs::absolute(path).string(), static_cast<std::int64_t>(bytes.size()),
          whole ? sha256(bytes).hex() : sampled_digest(bytes)};
}

/// Every regular file of a folder (one level), or the file itself.
std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

using Inputs = std::vector<std::pair<std::string, fs::path>>;  // kind, path

std::vector<store::InputRecord> describe_all(const Inputs& inputs, bool whole) {
  std::vector<store::InputRecord> records(inputs.size());
  at::parallel_for(
      0, static_cast<std::int64_t>(inputs.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          records[i] =
              describe(inputs[i].first, inputs[i].second, whole || inputs[i].first == "tokenizer");
        }
      });
  return records;
}

}  // namespace

std::vector<store::InputRecord> describe_inputs(const data::Dataset& dataset,
                                                const std::vector<fs::path>& label_masks,
                                                const std::optional<fs::path>& tokenizer) {
  Inputs inputs;
  for (const auto& file : dataset.files()) inputs.emplace_back("tokens", file.path());
  for (const auto& path : label_masks) inputs.emplace_back("label_mask", path);
  std::uint64_t bytes = 0;
  for (const auto& [kind, path] : inputs) bytes += fs::file_size(path);
  const bool whole = bytes <= kHashWholeUpTo;
  if (tokenizer) inputs.emplace_back("tokenizer", *tokenizer);
  return describe_all(inputs, whole);
}

std::vector<store::InputRecord> describe_weights(const fs::path& weights) {
  Inputs inputs;
  std::uint64_t bytes = 0;
  for (const auto& file : files_of(weights)) {
    inputs.emplace_back("weights", file);
    bytes += fs::file_size(file);
  }
  return describe_all(inputs, bytes <= kHashWholeUpTo);
}

void require_sidecars_agree(const std::vector<store::InputRecord>& inputs) {
  for (const auto& input : inputs) {
    if (input.kind != "tokens" || input.sha256.starts_with(kSampled)) continue;
    const auto sidecar = data::read_sidecar(input.path);
    if (!sidecar || !sidecar->sha256 || *sidecar->sha256 == input.sha256) continue;
    throw Error(ErrorKind::kInput,
                input.path + ": has SHA-256 " + input.sha256 + ", but its sidecar " +
                    data::sidecar_path(input.path).filename().string() + " says " +
                    *sidecar->sha256 +
                    ": one of the two was changed or replaced; tokenize the text again");
  }
}

}  // namespace olmo::train
