#include "train/beginning.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/text/text.h"
#include "models/read_weights.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/foreign/find_weights.h"
#include "store/run_files.h"
#include "train/resume_checks.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

/// A new run begins in a folder without checkpoints, be they whole or not.
void require_free_folder(const SessionOptions& options, const config::TrainConfig& config) {
  if (options.resume || config.save_overwrite) return;
  const auto folders = store::list_step_folders(options.run_dir);
  if (folders.whole.empty() && folders.broken.empty()) return;
  if (folders.whole.empty()) {
    throw Error(ErrorKind::kUsage, options.run_dir.string() +
                                       ": already holds checkpoints, none of which can be read (" +
                                       folders.broken.front().why + "): choose another --run-dir");
  }
  throw Error(ErrorKind::kUsage,
              options.run_dir.string() + ": already holds checkpoints of a run (the last is " +
                  folders.whole.front().path.filename().string() +
                  "): go on with --resume latest, choose another --run-dir, or set "
                  "save_overwrite=true");
}

PlannedStart planned_start(const Start& start, StartOf of, const config::TrainConfig& config) {
  const bool own = of == StartOf::kThisRun;
  const auto begin = own ? begin_of_run(start.saved, config) : begin_of_branch(start.saved, config);
  PlannedStart planned{{}, static_cast<std::int64_t>(begin.step)};
  if (own || takes_counters(config))
    planned.done = {start.saved.state.step, start.saved.state.tokens};
  return planned;
}

/// One of the optimizer's settings in the config that a checkpoint holds; null where it tells none.
Json saved_setting(const Start& start, const std::string& key) {
  const Json& config = *start.contents.config;
  const Json::json_pointer place("/optimizer/" + key);
  return config.contains(place) ? config.at(place) : Json();
}

/// The moments of one optimizer mean nothing to another.
void require_same_optimizer(const Start& start, const config::TrainConfig& config) {
  const Json saved = saved_setting(start, "name");
  if (config.reset_optimizer_state || !saved.is_string() || saved == config.optimizer.name) return;
  throw Error(ErrorKind::kUsage,
              "`optimizer.name` is " + config.optimizer.name + ", and " + start.path.string() +
                  " holds the moments of " + saved.get<std::string>() + ": give optimizer.name=" +
                  saved.get<std::string>() + ", or leave them with reset_optimizer_state=true");
}

/// OLMo counts the begin of the new warm-up in steps, also where its schedule counts tokens.
std::optional<std::string> note_of_new_warmup(const Start& start,
                                              const config::TrainConfig& config) {
  if (!config::begins_new_warmup(config) || config.scheduler.units != "tokens") return std::nullopt;
  const auto [done, begin] = planned_start(start, StartOf::kAnother, config);
  const auto end = begin + static_cast<std::int64_t>(config.scheduler.t_warmup);
  if (done.tokens < end) return std::nullopt;
  return "the learning rate is not warmed up anew: OLMo ends the new warm-up with token " +
         std::to_string(end) + ", its step " + std::to_string(begin) +
         " plus `scheduler.t_warmup`, and " + start.path.string() + " has seen " +
         std::to_string(done.tokens) + " tokens";
}

/// Settings of the optimizer that OLMo would take from the checkpoint, and not from the config: its
/// Trainer.load_trainer_state_dict sets a weight decay anew, unless it was 0.
std::vector<std::string> settings_kept_by_olmo(const Start& start,
                                               const config::TrainConfig& config) {
  if (config.reset_optimizer_state) return {};
  std::vector<std::string> kept = {"betas", "eps"};
  if (config.reset_trainer_state || saved_setting(start, "weight_decay") == 0)
    kept.emplace_back("weight_decay");
  return kept;
}

/// What a training does otherwise than the one whose checkpoint it takes over, or than OLMo would.
/// `begin`: of its data.
std::vector<std::string> notes_of_branch(const Start& start, const config::TrainConfig& config,
                                         const DataPosition& begin, const DataBatches& batches) {
  std::vector<std::string> notes;
  const Json now = to_json(config)["optimizer"];
  for (const auto& key : settings_kept_by_olmo(start, config)) {
    const Json saved = saved_setting(start, key);
    if (saved.is_null() || saved == now[key]) continue;
    notes.push_back("`optimizer." + key + "` is " + now[key].dump() +
                    ", where OLMo would go on with that of " + start.path.string() + ", " +
                    saved.dump());
  }
  if (auto note = note_of_new_warmup(start, config)) notes.push_back(std::move(*note));
  if (config.reset_trainer_state || begin == start.saved.position) return notes;
  const DataPosition next = position_of_step(begin, batches, begin.step + 1);
  notes.push_back("the data go on with instance " + std::to_string(next.instance) + " of epoch " +
                  std::to_string(next.epoch) + "; " + start.path.string() +
                  " stands before instance " + std::to_string(start.saved.position.instance) +
                  " of epoch " + std::to_string(start.saved.position.epoch));
  return notes;
}

/// OLMo's Trainer.fit takes max_duration for as many epochs as it has with batches of this size,
/// and ends with the last one: before max_duration where epochs were skipped or batches were
/// larger.
std::optional<std::string> note_of_last_epoch(const config::TrainConfig& config,
                                              const config::CountedStep& done,
                                              const DataPosition& begin,
                                              const DataBatches& batches) {
  const auto per_epoch = static_cast<std::int64_t>(batches.from(0));
  auto last = optim::max_steps(config.max_duration, config::progress_at(config, done, per_epoch));
  const auto epochs = batches.epochs_of(static_cast<std::uint64_t>(last));
  const auto end = static_cast<std::int64_t>(last_step_of_epochs(begin, batches, epochs));
  last = std::min(last, config.stop_at.value_or(last));
  if (end >= last || done.step >= last) return std::nullopt;
  const std::string at_end = std::to_string(end);
  return (end > done.step ? "OLMo would end with step " + at_end : "OLMo would train no step") +
         ": it takes `max_duration` for " + counted(static_cast<std::int64_t>(epochs), "epoch") +
         " of " + counted(per_epoch, "step") + ", and the training begins with instance " +
         std::to_string(begin.instance) + " of epoch " + std::to_string(begin.epoch) +
         (end > done.step ? "; stop_at=" + at_end + " ends it there" : "");
}

/// Where the weights of load_weights are read, if a start reads any.
std::optional<fs::path> find_weights(const Resumption& resumption,
                                     const config::TrainConfig& config) {
  if (resumption.start || !config.load_weights) return std::nullopt;
  return place_of_weights(*config.load_weights);
}

/// The digests of everything that decides the result: with those of the weights, if they are read.
std::vector<store::InputRecord> inputs_of(const Preparation& ready,
                                          const std::optional<fs::path>& weights) {
  auto inputs = ready.inputs;
  if (!weights) return inputs;
  const auto files = describe_weights(*weights);
  inputs.insert(inputs.end(), files.begin(), files.end());
  return inputs;
}

/// A folder of another software's cannot be gone on from as it is.
void refuse_foreign(const std::filesystem::path& path) {
  if (!store::holds_weights(path)) return;
  throw Error(ErrorKind::kInput,
              "`load_path`: " + path.string() +
                  " is a checkpoint of other software; import it first (`olmo-harness checkpoint "
                  "import " +
                  path.string() + " --to DIR`) and give load_path=DIR, or load_weights=" +
                  path.string() + " for a training that begins with its weights alone");
}

}  // namespace

std::filesystem::path database_of(const SessionOptions& options) {
  return options.database.empty() ? options.run_dir / store::kRunDatabaseName : options.database;
}

void require_place_for(const fs::path& database) {
  const fs::path folder = fs::absolute(database).parent_path();
  if (::access((folder / "").c_str(), W_OK | X_OK) == 0) return;
  throw Error(ErrorKind::kUsage, database.string() + ": the run database cannot be made: " +
                                     folder.string() + ": " + std::strerror(errno));
}

std::optional<Start> find_load_path(const config::TrainConfig& config, const ReadStart& read) {
  if (!config.load_path) return std::nullopt;
  refuse_foreign(*config.load_path);
  Start start = read(store::resolve_checkpoint(*config.load_path));
  require_same_optimizer(start, config);
  return start;
}

std::vector<std::string> notes_of_beginning(const std::optional<Start>& taken,
                                            const config::TrainConfig& config,
                                            std::uint64_t instances) {
  const DataBatches batches{instances, static_cast<std::uint64_t>(config.global_train_batch_size)};
  std::vector<std::string> notes;
  DataPosition begin = config::batch_config(config).begin;
  config::CountedStep done;
  if (taken) {
    begin = begin_of_branch(taken->saved, config);
    done = planned_start(*taken, StartOf::kAnother, config).done;
    notes = notes_of_branch(*taken, config, begin, batches);
  }
  if (auto note = note_of_last_epoch(config, done, begin, batches))
    notes.push_back(std::move(*note));
  return notes;
}

PlannedStart check_beginning(const SessionOptions& options, const config::TrainConfig& config,
                             Preparation& ready, Problems& problems) {
  const fs::path database = database_of(options);
  Resumption resumption;
  PlannedStart planned;
  problems.check([&] {
    if (options.resume && (*options.resume != store::kLatestName || is_there(options.run_dir)))
      resumption = find_resumption(options, database, config);
  });
  problems.check([&] {
    if (resumption.start) {
      planned = planned_start(*resumption.start, StartOf::kThisRun, config);
      return;
    }
    const auto taken = find_load_path(config);
    if (taken) planned = planned_start(*taken, StartOf::kAnother, config);
    if (ready.batches) {
      for (auto& note : notes_of_beginning(taken, config, ready.batches->dataset().size()))
        ready.notes.push_back(std::move(note));
    }
    const auto weights = taken ? std::nullopt : find_weights(resumption, config);
    if (weights) models::read_weights(*weights, config.model);
  });
  problems.check([&] { require_writable_folder(options.run_dir); });
  problems.check([&] { store::require_unlocked(options.run_dir); });
  if (is_there(options.run_dir)) problems.check([&] { require_free_folder(options, config); });
  problems.check([&] {
    if (!store::holds_tables(database)) {
      if (!options.database.empty()) require_place_for(database);  // else it is the run folder's
      return;
    }
    const auto db = store::RunDb::open(database, store::OpenMode::kReadOnly);
    if (!resumption.run_id || !ready.policy || !ready.batches) return;
    const auto inputs = inputs_of(ready, find_weights(resumption, config));
    check_successor(db, *resumption.run_id, {config, *ready.policy, inputs, resumption.start},
                    *ready.batches);
  });
  return planned;
}

Beginning find_beginning(const SessionOptions& options, const config::TrainConfig& config,
                         const Preparation& ready, const store::RunLock& lock,
                         const ReadStart& read) {
  Beginning beginning;
  auto& events = beginning.events;
  for (const auto& note : ready.notes) events.push_back({"note", note});
  store::remove_stale(options.run_dir);
  if (lock.broken()) events.push_back({"lock", *lock.broken()});
  require_free_folder(options, config);
  Resumption resumption;
  if (options.resume) resumption = find_resumption(options, database_of(options), config, read);
  events.insert(events.end(), resumption.events.begin(), resumption.events.end());
  beginning.weights = find_weights(resumption, config);
  beginning.inputs = inputs_of(ready, beginning.weights);
  beginning.continued = resumption.run_id;
  beginning.start = std::move(resumption.start);
  if (beginning.start) beginning.start_of = StartOf::kThisRun;
  return beginning;
}

void note_changes(Beginning& beginning, const store::RunDb& db, const config::TrainConfig& config,
                  Preparation& ready) {
  if (!beginning.continued) return;
  const Successor successor{config, *ready.policy, beginning.inputs, beginning.start};
  for (const auto& change : check_successor(db, *beginning.continued, successor, *ready.batches))
    beginning.events.push_back({"change", change});
}

}  // namespace olmo::train
