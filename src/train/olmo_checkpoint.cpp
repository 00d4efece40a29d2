#include "train/olmo_checkpoint.h"

#include <nlohmann/json.hpp>

#include "config/as_input.h"
#include "core/error.h"
#include "models/olmo_optimizer.h"
#include "models/read_weights.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

config::TrainConfig read_config(const fs::path& file) {
  return config::as_input([&] { return config::load_config(file).config; });
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

std::optional<SavedState> add_olmo_state(const models::ModelFiles& source,
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
  SavedState saved;
  saved.state.step = optimizer->step;
  saved.state.tokens = optimizer->step * config.tokens_per_step();
  saved.state.chain = digest_of(contents);
  saved.position.step = static_cast<std::uint64_t>(optimizer->step);
  saved.position.epoch = static_cast<std::uint64_t>(config.epoch.value_or(0));
  saved.position.instance =
      saved.position.step * static_cast<std::uint64_t>(config.global_train_batch_size);
  saved.run_id = "imported-" + saved.state.chain.hex().substr(0, 8);
  contents.trainer = to_json(saved.state, saved.run_id, config, config::batch_config(config).begin,
                             saved.position);
  return saved;
}

}  // namespace olmo::train
