#include "train/preparation.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>

#include <unistd.h>

#include "core/compute/libtorch.h"
#include "core/compute/parallel.h"
#include "core/files/input_file.h"
#include "core/hash.h"
#include "core/process/waiting_threads.h"
#include "core/text/text.h"
#include "data/public/fetch.h"
#include "data/token_file.h"
#include "models/read_weights.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/foreign/find_weights.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

/// Refuses bad token files before anything is written. Ids are looked at here if that takes a
/// fraction of a second, else when their batch comes.
void check_ids(const data::Dataset& dataset) {
  constexpr std::uint64_t kCheckIdsUpTo = std::uint64_t{1} << 30;
  std::uint64_t bytes = 0;
  for (const auto& file : dataset.files())
    bytes += file.size() * data::bytes_per_token(file.dtype());
  if (bytes <= kCheckIdsUpTo) dataset.check_all_ids();
}

/// Whether there are token files to look at: that none, or URLs, are named is told already.
bool has_local_data(const config::TrainConfig& config) {
  std::vector<std::string> paths = config.data.paths;
  for (const auto& [label, more] : config.data.datasets)
    paths.insert(paths.end(), more.begin(), more.end());
  return !paths.empty() && std::ranges::none_of(paths, [](const auto& path) {
    return path.find("://") != std::string::npos;
  });
}

/// The folder itself, or the nearest above it that exists.
fs::path existing_part(const fs::path& folder) {
  std::error_code error;
  fs::path part = fs::absolute(folder, error).lexically_normal();
  while (!part.empty() && part != part.root_path() && !fs::exists(part, error))
    part = part.parent_path();
  return part;
}

std::string gibibytes(double bytes) {
  const double size = bytes / 0x1p30;
  if (size < 1) return bytes_text(static_cast<std::int64_t>(bytes));
  return formatted(size < 9.95 ? "%.1f GiB" : "%.0f GiB", size);
}

std::optional<std::int64_t> checkpoints_kept(const config::TrainConfig& config,
                                             std::optional<std::int64_t> steps) {
  const auto keep = config.save_num_checkpoints_to_keep;
  if (keep > 0) return keep + 1;  // the oldest goes when the newest is whole
  if (!steps) return std::nullopt;
  std::int64_t count = config.no_pre_train_checkpoint || !config.save_interval ? 1 : 2;
  if (config.save_interval && *config.save_interval > 0 && keep != 0)
    count += (*steps - 1) / *config.save_interval;
  return count;
}

constexpr std::uint64_t kHashWholeUpTo = std::uint64_t{8} << 30;
constexpr char kSampled[] = "sampled";
constexpr char kTokenizer[] = "tokenizer";

/// How much of a file is hashed that is not hashed whole.
struct Samples {
  std::uint64_t count;
  std::uint64_t bytes;  ///< of each
  const char* name;     ///< before the digest
};
constexpr Samples kMany{64, std::uint64_t{1} << 20, "sampled:"};
/// Of ten thousand files the others would be 640 GB, which take as long as a day's steps where the
/// disk is far away; these are 2.6 GB.
constexpr Samples kFew{4, std::uint64_t{64} << 10, "sampled-4x64K:"};
constexpr std::size_t kFilesForMany = 256;

std::string sampled_digest(const MappedFile& file, const Samples& samples) {
  file.expect_random_access();
  const std::uint64_t size = file.bytes().size();
  std::vector<std::byte> sample(std::min(samples.bytes, size));
  Sha256 hash;
  hash.update_u64(size);
  for (std::uint64_t i = 0; i < samples.count; ++i) {
    // Beside 64 others the last one ends up to 62 bytes before the end: recorded digests are so.
    const std::uint64_t gaps = samples.count - 1, room = size - sample.size();
    const std::uint64_t at = &samples == &kMany ? room / gaps * i : room * i / gaps;
    file.prefetch(file.bytes().subspan(at, sample.size()));
    copy_mapped(file, at, sample);
    hash.update(sample.data(), sample.size());
  }
  return samples.name + hash.finish().hex();
}

/// `samples`: nothing hashes the whole file.
store::InputRecord describe(const std::string& kind, const fs::path& path, const Samples* samples) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  store::InputRecord record{
      kind, fs::absolute(path).string(), std::ssize(bytes),
      samples == nullptr ? sha256(bytes).hex() : sampled_digest(file, *samples)};
  file.check_not_cut();
  return record;
}

/// Every regular file of a folder (one level), or the file itself.
std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// Files are hashed whole up to 8 GiB in all; beyond that by size and evenly spaced samples (which
/// stands before the digest), since hashing a released data set would take longer than many a run.
/// The tokenizer is small, and always hashed whole.
const Samples* samples_for(const std::vector<InputFile>& files) {
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::size_t> count{0};
  for_each_while_waiting(files.size(), [&](std::size_t i) {
    if (files[i].kind == kTokenizer) return;
    bytes += fs::file_size(files[i].path);
    ++count;
  });
  if (bytes <= kHashWholeUpTo) return nullptr;
  return count <= kFilesForMany ? &kMany : &kFew;
}

}  // namespace

std::vector<InputFile> data_files_of(const config::TrainConfig& config) {
  std::vector<InputFile> files;
  for (const auto& path : config.data.files()) files.push_back({"tokens", path});
  for (const auto& path : config.data.label_mask_paths) files.push_back({"label_mask", path});
  return files;
}

std::vector<store::InputRecord> describe_inputs(const std::vector<InputFile>& files,
                                                const std::function<bool(std::size_t)>& wanted) {
  const Samples* const samples = samples_for(files);
  std::vector<store::InputRecord> records(files.size());
  const auto describe_one = [&](std::size_t i) {
    const auto& [kind, path] = files[i];
    if (wanted && !wanted(i)) {
      records[i] = {kind, fs::absolute(path).string(), 0, ""};
    } else {
      records[i] = describe(kind, path, kind == kTokenizer ? nullptr : samples);
    }
  };
  if (samples == &kFew)
    for_each_while_waiting(files.size(), describe_one);
  else
    for_each_in_parallel(files.size(), describe_one);
  return records;
}

std::vector<store::InputRecord> each_once(std::vector<store::InputRecord> inputs) {
  std::set<std::pair<std::string, std::string>> seen;
  std::erase_if(inputs,
                [&](const auto& input) { return !seen.emplace(input.kind, input.path).second; });
  return inputs;
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

Preparation prepare(const config::LoadedConfig& loaded, Problems& problems, InputDigests digests,
                    const LocalRank& local) {
  const config::TrainConfig& config = loaded.config;
  Preparation ready;
  ready.notes = loaded.notes;
  for (const auto& blocker : loaded.blockers) problems.add(Error(ErrorKind::kUsage, blocker));
  problems.check([&] {
    Policy policy = resolve_policy(config.numerics, config.isa, static_cast<int>(config.threads),
                                   config.device, local);
    policy.mixed_precision = config.mixed_precision();
    apply_policy(policy);
    ready.policy = std::move(policy);
  });
  problems.check([&] {
    ready.tokenizer = check_named_tokenizer(config);
    if (ready.tokenizer.note) ready.notes.push_back(*ready.tokenizer.note);
  });
  if (has_local_data(config)) {
    problems.check([&] {
      data::BatchSource batches(config::batch_config(config));
      check_ids(batches.dataset());
      ready.input_files = data_files_of(config);
      if (ready.tokenizer.path) ready.input_files.push_back({kTokenizer, *ready.tokenizer.path});
      if (digests == InputDigests::kNow) {
        ready.inputs = describe_inputs(ready.input_files);
        require_sidecars_agree(ready.inputs);
      }
      ready.batches.emplace(std::move(batches));
    });
  }
  problems.check([&] {
    ready.evaluators.emplace(config, ready.tokenizer.path, data::default_data_folder());
    const auto& notes = ready.evaluators->notes();
    ready.notes.insert(ready.notes.end(), notes.begin(), notes.end());
  });
  return ready;
}

void require_writable_folder(const fs::path& folder) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorKind::kUsage,
                folder.string() + ": the run directory cannot be made or written to: " + why);
  };
  std::error_code error;  // links in a circle, a name that is too long
  if (fs::status(folder, error).type() == fs::file_type::none) fail(error.message());
  const fs::path there = existing_part(folder);
  if (!fs::is_directory(there, error)) fail(there.string() + " is not a directory");
  if (::access(there.c_str(), W_OK | X_OK) != 0) fail(there.string() + ": " + std::strerror(errno));
}

Needs needs_of(const config::TrainConfig& config, const NeededMemory& memory_of,
               const fs::path& run_dir, std::optional<std::int64_t> steps) {
  // A plan is made on machines without the GPU, too: how much memory that has is not known here.
  // What is too much there is said when it is allocated.
  Needs needs{.memory = memory_of(config),
              .memory_of = memory_of,
              .machine = machine_memory(),
              .checkpoint = checkpoint_bytes(config),
              .checkpoints = checkpoints_kept(config, steps),
              .free_on_disk = {}};
  std::error_code error;
  const auto space = fs::space(existing_part(run_dir), error);
  if (!error) needs.free_on_disk = space.available;
  return needs;
}

std::vector<std::string> shortages(const Needs& needs, const config::TrainConfig& config,
                                   const fs::path& run_dir) {
  std::vector<std::string> lines;
  const auto memory = static_cast<double>(needs.memory);
  if (const auto usable = needs.machine.usable(); usable && memory > static_cast<double>(*usable)) {
    lines.push_back("memory: a step needs " + gibibytes(memory) + ", you have " +
                    gibibytes(static_cast<double>(*usable)) +
                    (needs.machine.limit == usable ? " (the limit of the control group)" : "") +
                    "; " + ways_to_need_less(config, needs.memory_of));
  }
  const auto checkpoint = static_cast<double>(needs.checkpoint);
  if (needs.free_on_disk && checkpoint > static_cast<double>(*needs.free_on_disk)) {
    lines.push_back("disk: a checkpoint needs " + gibibytes(checkpoint) + ", " +
                    gibibytes(static_cast<double>(*needs.free_on_disk)) + " are free in " +
                    existing_part(run_dir).string() + ": choose another --run-dir");
  }
  return lines;
}

void Problems::keep(ErrorKind kind, const std::string& message) {
  const bool known = std::any_of(all_.begin(), all_.end(),
                                 [&](const Error& other) { return other.what() == message; });
  if (!known) all_.emplace_back(kind, message);
}

void Problems::add(const Error& problem) {
  std::istringstream lines(problem.what());
  std::string message;
  for (std::string line; std::getline(lines, line);) {
    if (!message.empty() && !line.starts_with(' ')) {
      keep(problem.kind(), message);
      message.clear();
    }
    message += (message.empty() ? "" : "\n") + line;
  }
  keep(problem.kind(), message);
}

void Problems::throw_if_any() const {
  if (all_.empty()) return;
  std::string text;
  for (const auto& problem : all_) text += (text.empty() ? "" : "\n") + std::string(problem.what());
  throw Error(all_.front().kind(), text);
}

fs::path place_of_weights(const fs::path& weights) {
  models::require_weights(weights);
  return store::holds_weights(weights) ? weights : store::resolve_checkpoint(weights);
}

std::vector<store::InputRecord> describe_weights(const fs::path& weights) {
  std::vector<InputFile> files;
  for (const auto& path : files_of(place_of_weights(weights))) files.push_back({"weights", path});
  return describe_inputs(files);
}

}  // namespace olmo::train
