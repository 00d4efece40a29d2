#include "train/olmo_checkpoint.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>

#include <nlohmann/json.hpp>

#include "config/as_input.h"
#include "core/error.h"
#include "core/files/input_file.h"
#include "models/olmo_optimizer.h"
#include "models/read_weights.h"
#include "store/foreign/torch_file.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

std::int64_t multiplied(std::int64_t steps, std::int64_t of_step, const fs::path& file) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(steps, of_step, &product) && product <= kMostCounted) return product;
  throw Error(ErrorKind::kInput, file.string() + ": " + std::to_string(steps) + " steps of " +
                                     std::to_string(of_step) + " are beyond any training");
}

config::TrainConfig read_config(const fs::path& file) {
  return config::as_input([&] { return config::load_config(file).config; });
}

/// What OLMo's trainer had counted, by the names that it has had for that
/// (Trainer.load_trainer_state_dict). What an older one did not write follows from the number of
/// batches, as if each had had the size that the config says; without `numbers` all does.
OlmoState counters_of(const std::map<std::string, std::int64_t>& numbers, std::int64_t steps,
                      const config::TrainConfig& config, const fs::path& file) {
  const auto counter = [&](std::initializer_list<const char*> keys, std::int64_t otherwise) {
    for (const std::string key : keys) {
      const auto found = numbers.find(key);
      if (found == numbers.end()) continue;
      if (found->second >= 0 && found->second <= kMostCounted) return found->second;
      throw Error(ErrorKind::kInput, file.string() + ": `" + key + "` is " +
                                         std::to_string(found->second) + ", expected 0 to 2^53");
    }
    return otherwise;
  };
  const auto batches = counter({"global_data_step", "global_step"}, steps);
  const auto instances = multiplied(batches, config.global_train_batch_size, file);
  OlmoState saved;
  saved.state.step = counter({"global_step"}, steps);
  saved.state.tokens =
      counter({"global_train_tokens_seen"}, multiplied(batches, config.tokens_per_step(), file));
  saved.position = {
      .step = static_cast<std::uint64_t>(saved.state.step),
      .epoch = static_cast<std::uint64_t>(
          counter({"epoch"}, numbers.empty() ? config.epoch.value_or(0) : 0)),
      .instance = static_cast<std::uint64_t>(counter(
          {"global_train_examples_seen_this_epoch", "global_train_examples_seen"}, instances))};
  return saved;
}

/// In an unsharded checkpoint, in one of shards, and in one of ShardedTensors.
constexpr std::array<const char*, 3> kCounters = {"train.pt", "train/rank0.pt", "rank0.pt"};

OlmoState read_counters(const fs::path& folder, std::int64_t steps,
                        const config::TrainConfig& config) {
  const auto* name = std::ranges::find_if(
      kCounters, [&](const char* counters) { return is_there(folder / counters); });
  if (name == kCounters.end()) return counters_of({}, steps, config, folder / models::kOlmoConfig);
  const fs::path file = folder / *name;
  const auto numbers = store::TorchFile(file).root().integers();
  if (!numbers.contains("global_step"))
    throw Error(ErrorKind::kInput,
                file.string() + ": holds no `global_step`, as OLMo's trainer writes it");
  OlmoState saved = counters_of(numbers, steps, config, file);
  saved.counters = *name;
  return saved;
}

/// A digest of everything that a training takes over.
Digest digest_of(const store::CheckpointContents& contents) {
  Sha256 hash;
  hash.update("olmo-imported-state-1");
  for (const NamedTensors* part : {&contents.model, &contents.optim})
    for (const auto& [name, tensor] : *part)
      hash.update(name).update(sha256(host_bytes(tensor)).hex());
  return hash.finish();
}

}  // namespace

std::optional<OlmoState> add_olmo_state(const models::ModelFiles& source,
                                        store::CheckpointContents& contents) {
  if (source.format != models::ModelFormat::kOlmo) return std::nullopt;
  auto optimizer = models::read_olmo_optimizer(source.path, source.config);
  if (!optimizer) return std::nullopt;
  const fs::path file = source.path / models::kOlmoConfig;
  const config::TrainConfig config = read_config(file);
  if (config.optimizer.name != "adamw")
    throw Error(ErrorKind::kInput, file.string() + ": `optimizer.name` is " +
                                       config.optimizer.name + ", expected adamw");
  contents.kind = store::CheckpointKind::kFull;
  contents.config = to_json(config);
  contents.optim = std::move(optimizer->tensors);
  contents.optim_state = to_json(optim::ClipLimits{
      .max_grad_norm = config.max_grad_norm, .max_grad_norm_ratio = config.max_grad_norm_ratio});
  OlmoState saved = read_counters(source.path, optimizer->step, config);
  saved.state.chain = digest_of(contents);
  saved.run_id = "imported-" + saved.state.chain.hex().substr(0, 8);
  contents.trainer = to_json(saved.state, saved.run_id, config, config::batch_config(config).begin,
                             saved.position);
  return saved;
}

}  // namespace olmo::train
