#include "train/beginning.h"

#include "core/error.h"
#include "core/files/input_file.h"
#include "models/read_weights.h"
#include "store/checkpoint/checkpoint_folder.h"
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

}  // namespace

std::filesystem::path database_of(const SessionOptions& options) {
  return options.database.empty() ? options.run_dir / store::kRunDatabaseName : options.database;
}

std::optional<Start> find_load_path(const config::TrainConfig& config, const ReadStart& read) {
  if (!config.load_path) return std::nullopt;
  if (config.reset_optimizer_state != config.reset_trainer_state) {
    throw Error(ErrorKind::kUsage,
                "`reset_optimizer_state` and `reset_trainer_state` must be equal here: to keep one "
                "without the other is not supported");
  }
  return read(store::resolve_checkpoint(*config.load_path));
}

void check_beginning(const SessionOptions& options, const config::TrainConfig& config,
                     Preparation& ready, Problems& problems) {
  const fs::path database = database_of(options);
  Resumption resumption;
  problems.check([&] {
    if (options.resume && (*options.resume != store::kLatestName || is_there(options.run_dir)))
      resumption = find_resumption(options, database, config);
  });
  problems.check([&] {
    if (resumption.start || find_load_path(config)) return;
    if (const auto weights = find_weights(resumption, config))
      models::read_weights(*weights, config.model);
  });
  problems.check([&] { require_writable_folder(options.run_dir); });
  problems.check([&] { store::require_unlocked(options.run_dir); });
  if (is_there(options.run_dir)) problems.check([&] { require_free_folder(options, config); });
  problems.check([&] {
    if (!store::holds_tables(database))
      return require_writable_folder(fs::absolute(database).parent_path());
    const auto db = store::RunDb::open(database, store::OpenMode::kReadOnly);
    if (!resumption.run_id || !ready.policy || !ready.batches) return;
    const auto inputs = inputs_of(ready, find_weights(resumption, config));
    check_successor(db, *resumption.run_id, {config, *ready.policy, inputs, resumption.start},
                    *ready.batches);
  });
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
  beginning.with_state = beginning.start || !config.reset_trainer_state;
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
