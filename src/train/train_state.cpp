#include "train/train_state.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "dist/exchange.h"
#include "dist/together.h"
#include "models/read_weights.h"
#include "store/foreign/find_weights.h"
#include "store/foreign/weight_files.h"
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

std::int64_t counter(const Json& object, const char* key, const std::string& where) {
  const Json value = get<Json>(object, key, where);
  const bool usable = value.is_number_unsigned()
                          ? value.get<std::uint64_t>() <= std::uint64_t{kMostCounted}
                          : value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
                                value.get<std::int64_t>() <= kMostCounted;
  if (usable) return value.get<std::int64_t>();
  throw Error(ErrorKind::kDamaged, where + ": the trainer state has no usable `" + key +
                                       "`: expected a whole number from 0 to 2^53");
}

DataPosition read_position(const Json& data, std::int64_t step, const std::string& where) {
  const auto epoch = counter(data, "epoch", where);
  const auto instance = counter(data, "start_index", where);
  return {.step = static_cast<std::uint64_t>(step),
          .epoch = static_cast<std::uint64_t>(epoch),
          .instance = static_cast<std::uint64_t>(instance)};
}

std::optional<DataPosition> read_begin(const Json& data, const std::string& where) {
  if (!data.contains("begin")) return std::nullopt;
  const Json begin = get<Json>(data, "begin", where);
  return read_position(begin, counter(begin, "step", where), where);
}

/// The files from which weights of other software are read.
std::vector<InputFile> files_of(const std::filesystem::path& weights) {
  const store::StoredTensors stored = store::open_weights(weights);
  std::vector<InputFile> files;
  for (const auto& file : stored.files()) files.push_back({"weights", file.map().path()});
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
  if (!dist::broadcast_value(ranks, store::holds_weights(path), 0)) {
    RankCheckpoints checkpoints(ranks.split(0), {}, parts);
    return stepper.load_owned_weights(checkpoints.read_weights(path));
  }
  std::vector<InputFile> files;
  dist::together(ranks, [&] { files = files_of(path); });
  require_same_files(ranks, files);
  std::vector<models::WeightSlice> slices;
  for (const auto& part : parts) slices.push_back({part.begin, part.size});
  NamedTensors owned;
  dist::together(ranks, [&] { owned = models::read_foreign_slices(path, model, slices); });
  stepper.load_owned_weights(owned);
}

}  // namespace

Json to_json(const TrainState& state, const std::string& run_id, const config::TrainConfig& config,
             const DataPosition& begin, const DataPosition& now) {
  return {{"step", state.step},
          {"epoch", now.epoch},
          {"tokens_seen", state.tokens},
          {"examples_seen_epoch", now.instance},
          {"world_size", 1},
          {"run_id", run_id},
          {"experiment_digest", config::experiment_digest(config).hex()},
          {"chain_format", kChainFormat},
          {"chain_hash", state.chain.hex()},
          {"min_loss", std::isfinite(state.min_loss) ? Json(state.min_loss) : Json(nullptr)},
          {"data",
           {{"seed", config.data.seed.value_or(config.seed)},
            {"epoch", now.epoch},
            {"start_index", now.instance},
            {"begin",
             {{"step", begin.step}, {"epoch", begin.epoch}, {"start_index", begin.instance}}}}}};
}

Json to_json(const optim::ClipLimits& limits) {
  return {{"max_grad_norm", or_null(limits.max_grad_norm)},
          {"max_grad_norm_ratio", or_null(limits.max_grad_norm_ratio)}};
}

SavedState read_state(const Json& trainer, const std::string& where) {
  SavedState saved;
  saved.state.step = counter(trainer, "step", where);
  saved.state.tokens = counter(trainer, "tokens_seen", where);
  const Json data = get<Json>(trainer, "data", where);
  saved.position = read_position(data, saved.state.step, where);
  saved.begin = read_begin(data, where);
  saved.state.chain = Digest::from_hex(get<std::string>(trainer, "chain_hash", where));
  if (const auto min_loss = optional_number(trainer, "min_loss", where))
    saved.state.min_loss = *min_loss;
  saved.run_id = get<std::string>(trainer, "run_id", where);
  saved.experiment_digest = get<std::string>(trainer, "experiment_digest", where);
  if (trainer.contains("chain_format"))
    saved.chain_format = counter(trainer, "chain_format", where);
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

DataPosition begin_of_run(const SavedState& saved, const config::TrainConfig& config) {
  return saved.begin.value_or(config::batch_config(config).begin);
}

bool takes_counters(const config::TrainConfig& config) {
  return config.restore_dataloader && !config.reset_trainer_state;
}

DataPosition begin_of_branch(const SavedState& saved, const config::TrainConfig& config) {
  if (config.reset_trainer_state) return config::batch_config(config).begin;
  DataPosition begin;
  if (config.restore_dataloader) {
    begin = saved.position;
    const auto epoch = static_cast<std::uint64_t>(config.epoch.value_or(0));
    if (config.epoch && epoch != begin.epoch) begin = {begin.step, epoch, 0};
  }
  const auto skipped = config.fast_forward_batches.value_or(0) * config.global_train_batch_size;
  begin.instance += static_cast<std::uint64_t>(skipped);
  return begin;
}

void begin_at(Stepper& stepper, std::optional<Start>& start, StartOf of,
              const std::optional<std::filesystem::path>& weights) {
  const config::TrainConfig& config = stepper.config();
  if (!start) {
    if (!config.load_weights) return stepper.init_weights();
    return load_weights(stepper, weights.value_or(*config.load_weights));
  }
  const bool own = of == StartOf::kThisRun;
  const SavedState& saved = start->saved;
  stepper.batches().begin_at(own ? begin_of_run(saved, config) : begin_of_branch(saved, config));
  if (own || takes_counters(config)) stepper.go_on_from(saved.state);
  // Moments before weights: theirs is memory that the stepper holds already.
  if (own || !config.reset_optimizer_state) {
    const auto limits = read_limits(*start->contents.optim_state, start->path.string());
    stepper.restore_owned({start->contents.optim, limits});
  }
  start->contents.optim.clear();
  stepper.load_owned_weights(start->contents.model);
  start->contents.model.clear();
}

}  // namespace olmo::train
