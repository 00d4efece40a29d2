#include "train/train_state.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "dist/exchange.h"
#include "dist/together.h"
#include "models/read_weights.h"
#include "store/checkpoint/safetensors.h"
#include "train/rank_checkpoint.h"
#include "train/shared_inputs.h"

namespace olmo::train {
namespace {

template <class T>
T get(const Json& object, const char* key, const std::string& where) {
  try {
    return object.at(key).get<T>();
  } catch (const Json::exception&) {
    throw Error(ErrorKind::kDamaged, where + ": the trainer state has no usable `" + key + "`");
  }
}

std::optional<double> optional_number(const Json& object, const char* key,
                                      const std::string& where) {
  if (!object.contains(key) || object.at(key).is_null()) return std::nullopt;
  return get<double>(object, key, where);
}

/// The files from which safetensors weights are read.
std::vector<InputFile> files_of(const std::filesystem::path& weights) {
  std::vector<InputFile> files;
  for (const auto& file : store::open_safetensors(weights))
    files.push_back({"weights", file.map().path()});
  return files;
}

/// Ranks read their own parts; those of a checkpoint are verified as parts of whole tensors, and
/// the files of other weights must be the same everywhere.
void load_weights(Stepper& stepper, const std::filesystem::path& path) {
  const model::ModelConfig& model = stepper.config().model;
  dist::Communicator& ranks = stepper.ranks();
  if (ranks.size() == 1) return stepper.load_weights(models::read_weights(path, model));
  dist::together(ranks, [&] { models::require_weights(path); });
  const ParameterParts parts = stepper.parameter_parts();
  if (!dist::broadcast_value(ranks, store::holds_safetensors(path), 0)) {
    RankCheckpoints checkpoints(ranks.split(0), {}, parts);
    return stepper.load_owned_weights(checkpoints.read_weights(path));
  }
  std::vector<InputFile> files;
  dist::together(ranks, [&] { files = files_of(path); });
  require_same_files(ranks, files);
  std::vector<models::WeightSlice> slices;
  for (const auto& part : parts) slices.push_back({part.begin, part.size});
  NamedTensors owned;
  dist::together(ranks, [&] { owned = models::read_safetensors_slices(path, model, slices); });
  stepper.load_owned_weights(owned);
}

}  // namespace

Json to_json(const TrainState& state, const std::string& run_id, const config::TrainConfig& config,
             const data::BatchSource& batches) {
  const auto per_epoch = static_cast<std::int64_t>(batches.steps_per_epoch());
  const auto epoch = static_cast<std::int64_t>(config.epoch.value_or(0)) + state.step / per_epoch;
  const auto seen_this_epoch = state.step % per_epoch * config.global_train_batch_size;
  return {{"step", state.step},
          {"epoch", epoch},
          {"tokens_seen", state.tokens},
          {"examples_seen_epoch", seen_this_epoch},
          {"world_size", 1},
          {"run_id", run_id},
          {"experiment_digest", config::experiment_digest(config).hex()},
          {"chain_format", kChainFormat},
          {"chain_hash", state.chain.hex()},
          {"min_loss", std::isfinite(state.min_loss) ? Json(state.min_loss) : Json(nullptr)},
          {"data",
           {{"seed", config.data.seed.value_or(config.seed)},
            {"epoch", epoch},
            {"start_index", seen_this_epoch}}}};
}

Json to_json(const optim::ClipLimits& limits) {
  return {{"max_grad_norm", or_null(limits.max_grad_norm)},
          {"max_grad_norm_ratio", or_null(limits.max_grad_norm_ratio)}};
}

SavedState read_state(const Json& trainer, const std::string& where) {
  SavedState saved;
  saved.state.step = get<std::int64_t>(trainer, "step", where);
  saved.state.tokens = get<std::int64_t>(trainer, "tokens_seen", where);
  if (saved.state.step < 0 || saved.state.tokens < 0)
    throw Error(ErrorKind::kDamaged, where + ": the trainer state has a negative counter");
  saved.state.chain = Digest::from_hex(get<std::string>(trainer, "chain_hash", where));
  if (const auto min_loss = optional_number(trainer, "min_loss", where))
    saved.state.min_loss = *min_loss;
  saved.run_id = get<std::string>(trainer, "run_id", where);
  saved.experiment_digest = get<std::string>(trainer, "experiment_digest", where);
  if (trainer.contains("chain_format"))
    saved.chain_format = get<std::int64_t>(trainer, "chain_format", where);
  return saved;
}

optim::ClipLimits read_limits(const Json& optim_state, const std::string& where) {
  return {optional_number(optim_state, "max_grad_norm", where),
          optional_number(optim_state, "max_grad_norm_ratio", where)};
}

Start read_start(const std::filesystem::path& checkpoint) {
  const store::CheckpointReader reader(checkpoint);
  Start start = read_start_documents(reader);
  start.contents.model = reader.read("model");
  start.contents.optim = reader.read("optim");
  return start;
}

Start read_start_documents(const store::CheckpointReader& reader) {
  const auto& checkpoint = reader.path();
  Start start{checkpoint, {}, {}};
  start.contents.kind = reader.kind();
  start.contents.config = reader.config();
  start.contents.trainer = reader.trainer();
  if (start.contents.kind != store::CheckpointKind::kFull) {
    throw Error(ErrorKind::kUsage,
                checkpoint.string() +
                    ": holds weights only; start from it with load_weights=" + checkpoint.string());
  }
  start.contents.optim_state = reader.optim_state();
  start.saved = read_state(*start.contents.trainer, checkpoint.string());
  return start;
}

void begin_at(Stepper& stepper, std::optional<Start>& start, bool with_state,
              const std::optional<std::filesystem::path>& weights) {
  const config::TrainConfig& config = stepper.config();
  // Moments before weights: theirs is memory that the stepper holds already.
  if (start && with_state) {
    const auto limits = read_limits(*start->contents.optim_state, start->path.string());
    stepper.restore_owned(start->saved.state, {start->contents.optim, limits});
  }
  if (start) {
    start->contents.optim.clear();
    stepper.load_owned_weights(start->contents.model);
    start->contents.model.clear();
  } else if (config.load_weights) {
    load_weights(stepper, weights.value_or(*config.load_weights));
  } else {
    stepper.init_weights();
  }
}

}  // namespace olmo::train
