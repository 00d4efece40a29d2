#include "train/olmo_checkpoint.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "config/as_input.h"
#include "config/key_table.h"
#include "core/error.h"
#include "core/files/input_file.h"
#include "models/olmo_optimizer.h"
#include "models/read_weights.h"
#include "models/told_model.h"
#include "models/told_training.h"
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

/// `steps`: what the optimizer's state tells of them, if it does.
OlmoState read_counters(const fs::path& folder, const std::optional<std::int64_t>& steps,
                        const config::TrainConfig& config) {
  const auto* name = std::ranges::find_if(
      kCounters, [&](const char* counters) { return is_there(folder / counters); });
  if (name == kCounters.end()) {
    if (steps) return counters_of({}, *steps, config, folder / models::kOlmoConfig);
    throw Error(ErrorKind::kInput,
                folder.string() +
                    ": holds no train.pt, and the state of LionW does not tell the "
                    "number of updates");
  }
  const fs::path file = folder / *name;
  const auto numbers = store::TorchFile(file).root().integers();
  if (!numbers.contains("global_step"))
    throw Error(ErrorKind::kInput,
                file.string() + ": holds no `global_step`, as OLMo's trainer writes it");
  OlmoState saved = counters_of(numbers, steps.value_or(0), config, file);
  saved.counters = *name;
  return saved;
}

/// OLMo-core's config in OLMo's keys. The order of the data is drawn as OLMo's, from seed + epoch,
/// but that epochs count from 1.
config::TrainConfig in_olmo_keys(const Json& experiment, const fs::path& file) {
  const auto told = models::read_told_model(experiment);
  if (!told) throw Error(ErrorKind::kInput, file.string() + ": tells no model");
  Json keys = Json::parse(told->in_olmo_keys);
  keys.erase(config::kOlmoCore);
  keys["optimizer"].update(*models::adamw_of_olmo_core(experiment));
  const Json::json_pointer seed("/data_loader/seed");
  if (experiment.contains(seed) && experiment[seed].is_number_integer() &&
      experiment[seed] < std::numeric_limits<std::int64_t>::max())
    keys["data"]["seed"] = experiment[seed].get<std::int64_t>() + 1;
  return config::as_input([&] {
    return config::parse_config(json_text(keys), file.string() + ", in OLMo's keys").config;
  });
}

constexpr char kCoreCounters[] = "train/rank0.pt";

/// What OLMo-core's trainer had counted, and its data loader, which counts epochs from 1.
OlmoState read_core_counters(const fs::path& folder, const config::TrainConfig& config) {
  const fs::path file = folder / kCoreCounters;
  const store::TorchFile trainer(file);
  const auto numbers = trainer.root().integers();
  const auto* loader = trainer.root().find("data_loader");
  const auto loaded =
      loader == nullptr ? std::map<std::string, std::int64_t>() : loader->integers();
  const auto counter = [&](const auto& counters, const char* key) {
    const auto found = counters.find(key);
    if (found != counters.end() && found->second >= 0 && found->second <= kMostCounted)
      return found->second;
    throw Error(ErrorKind::kInput,
                file.string() + ": holds no `" + key + "` from 0 to 2^53, as OLMo-core writes it");
  };
  OlmoState saved;
  saved.counters = kCoreCounters;
  saved.state.step = counter(numbers, "global_step");
  saved.state.tokens = counter(numbers, "global_train_tokens_seen");
  const auto epoch = std::max<std::int64_t>(counter(loaded, "epoch"), 1) - 1;
  saved.position = {.step = static_cast<std::uint64_t>(saved.state.step),
                    .epoch = static_cast<std::uint64_t>(epoch),
                    .instance = static_cast<std::uint64_t>(counter(loaded, "tokens_processed") /
                                                           config.model.max_sequence_length)};
  return saved;
}

/// Why AdamW cannot go on from what OLMo-core saved; empty: it can, as far as its files are sound.
std::string unfit(const fs::path& folder, const Json& experiment) {
  const Json::json_pointer of_class("/train_module/optim/_CLASS_");
  if (!models::adamw_of_olmo_core(experiment))
    return "its `train_module.optim` is of " +
           json_text(experiment.contains(of_class) ? experiment[of_class] : Json()) +
           ", and no AdamWConfig";
  return is_there(folder / kCoreCounters) ? "" : std::string(kCoreCounters) + " is not there";
}

/// Of a state whose step is set. SkipStepAdamW did not count its updates before its
/// `step_increment_bugfix`: its moments with AdamW's correction for a first update would be ten
/// times as large. Steps that it skips are few.
bool counts_updates(const models::OlmoOptimizer& optimizer, const OlmoState& saved) {
  return *optimizer.step >= saved.state.step / 2;
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

TakenState add_olmo_state(const models::ModelFiles& source, store::CheckpointContents& contents) {
  const bool of_core = source.format == models::ModelFormat::kOlmoCore;
  if (!of_core && source.format != models::ModelFormat::kOlmo) return {};
  const fs::path file = source.path / (of_core ? models::kJsonConfig : models::kOlmoConfig);
  const Json experiment = of_core ? read_json_file(file) : Json();
  if (of_core && models::holds_olmo_optimizer(source.path))
    if (std::string why = unfit(source.path, experiment); !why.empty()) return {{}, std::move(why)};
  auto optimizer = models::read_olmo_optimizer(source.path, source.config);
  if (!optimizer) return {};
  const config::TrainConfig config = of_core ? in_olmo_keys(experiment, file) : read_config(file);
  if (config.optimizer.name != optimizer->name)
    throw Error(ErrorKind::kInput, file.string() + ": `optimizer.name` is " +
                                       config.optimizer.name + ", expected " + optimizer->name);
  OlmoState saved = of_core ? read_core_counters(source.path, config)
                            : read_counters(source.path, optimizer->step, config);
  if (!optimizer->step) optimizer->set_step(saved.state.step);
  if (of_core && !counts_updates(*optimizer, saved))
    return {{},
            "it counts " + std::to_string(*optimizer->step) + " updates in " +
                std::to_string(saved.state.step) + " steps"};
  contents.kind = store::CheckpointKind::kFull;
  contents.config = to_json(config);
  contents.optim = std::move(optimizer->tensors);
  contents.optim_state = to_json(optim::ClipLimits{
      .max_grad_norm = config.max_grad_norm, .max_grad_norm_ratio = config.max_grad_norm_ratio});
  saved.state.chain = digest_of(contents);
  saved.run_id = "imported-" + saved.state.chain.hex().substr(0, 8);
  contents.trainer = to_json(saved.state, saved.run_id, config, config::batch_config(config).begin,
                             saved.position);
  return {std::move(saved), ""};
}

}  // namespace olmo::train
