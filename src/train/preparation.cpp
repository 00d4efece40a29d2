#include "train/preparation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include <unistd.h>

#include "data/public/fetch.h"
#include "model/model_size.h"

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

/// Token files, label masks and tokenizer, with their digests.
std::vector<store::InputRecord> check_inputs(const config::TrainConfig& config,
                                             const data::Dataset& dataset,
                                             const std::optional<fs::path>& tokenizer) {
  check_ids(dataset);
  const std::vector<fs::path> masks(config.data.label_mask_paths.begin(),
                                    config.data.label_mask_paths.end());
  auto inputs = describe_inputs(dataset, masks, tokenizer);
  require_sidecars_agree(inputs);
  return inputs;
}

/// Whether there are token files to look at: that none, or URLs, are named is told already.
bool has_local_data(const config::TrainConfig& config) {
  std::vector<std::string> paths = config.data.paths;
  for (const auto& [label, more] : config.data.datasets)
    paths.insert(paths.end(), more.begin(), more.end());
  return !paths.empty() && std::none_of(paths.begin(), paths.end(), [](const auto& path) {
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
  std::array<char, 32> text{};
  const double size = bytes / 0x1p30;
  std::snprintf(text.data(), text.size(), size < 9.95 ? "%.1f GiB" : "%.0f GiB", size);
  return text.data();
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

}  // namespace

Preparation prepare(const config::LoadedConfig& loaded, Problems& problems) {
  const config::TrainConfig& config = loaded.config;
  Preparation ready;
  ready.notes = loaded.notes;
  for (const auto& blocker : loaded.blockers) problems.add(Error(ErrorKind::kUsage, blocker));
  problems.check([&] {
    ready.policy = resolve_policy(config.numerics, config.isa, static_cast<int>(config.threads),
                                  config.device);
    ready.policy->precision = config.precision;
    apply_policy(*ready.policy);
  });
  problems.check([&] {
    ready.tokenizer = check_named_tokenizer(config);
    if (ready.tokenizer.note) ready.notes.push_back(*ready.tokenizer.note);
  });
  if (has_local_data(config)) {
    problems.check([&] {
      data::BatchSource batches(config::batch_config(config));
      ready.inputs = check_inputs(config, batches.dataset(), ready.tokenizer.path);
      ready.batches.emplace(std::move(batches));
    });
  }
  problems.check([&] {
    ready.evaluators.emplace(config, ready.tokenizer.path,
                             data::evaluation_data_folder(data::default_data_folder()));
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
  const fs::path there = existing_part(folder);
  std::error_code error;
  if (!fs::is_directory(there, error)) fail(there.string() + " is not a directory");
  if (::access(there.c_str(), W_OK | X_OK) != 0)
    fail("no permission to write in " + there.string());
}

model::MemoryEstimate memory_of(const config::TrainConfig& config) {
  const auto micro = std::min(config.device_train_microbatch_size, config.global_train_batch_size);
  const auto micro_batches = config.global_train_batch_size / micro;
  // Gradients of micro-batches are added along a binary tree, so one partial sum a level waits for
  // its partner.
  return model::estimate_memory(config.model,
                                {.batch = micro,
                                 .length = config.model.max_sequence_length,
                                 .gradient_sets = static_cast<std::int64_t>(
                                     std::bit_width(static_cast<std::uint64_t>(micro_batches))),
                                 .moments = config.optimizer.name == "lionw" ? 1 : 2});
}

Needs needs_of(const config::TrainConfig& config, const fs::path& run_dir,
               std::optional<std::int64_t> steps) {
  const auto memory = memory_of(config);
  Needs needs{.memory = memory.total(),
              .machine = machine_memory(),
              .checkpoint = memory.weights + memory.moments,
              .checkpoints = checkpoints_kept(config, steps),
              .free_on_disk = {}};
  std::error_code error;
  const auto space = fs::space(existing_part(run_dir), error);
  if (!error) needs.free_on_disk = space.available;
  return needs;
}

std::vector<std::string> shortages(const Needs& needs, const fs::path& run_dir) {
  std::vector<std::string> lines;
  const auto memory = static_cast<double>(needs.memory);
  if (const auto usable = needs.machine.usable(); usable && memory > static_cast<double>(*usable)) {
    lines.push_back(
        "memory: a step needs " + gibibytes(memory) + ", you have " +
        gibibytes(static_cast<double>(*usable)) +
        (needs.machine.limit == usable ? " (the limit of the control group)" : "") +
        ": make device_train_microbatch_size, max_sequence_length or the model smaller");
  }
  const auto checkpoint = static_cast<double>(needs.checkpoint);
  if (needs.free_on_disk && checkpoint > static_cast<double>(*needs.free_on_disk)) {
    lines.push_back("disk: a checkpoint needs " + gibibytes(checkpoint) + ", " +
                    gibibytes(static_cast<double>(*needs.free_on_disk)) + " are free in " +
                    existing_part(run_dir).string() + ": choose another --run-dir");
  }
  return lines;
}

}  // namespace olmo::train
