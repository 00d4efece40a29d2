#include "train/session.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "data/fetch.h"
#include "model/model_size.h"
#include "store/checkpoint_folder.h"
#include "store/run_lock.h"
#include "train/batch_config.h"
#include "train/energy/meter.h"
#include "train/json_difference.h"
#include "train/peak_flops.h"
#include "train/provenance.h"
#include "train/run_inputs.h"
#include "train/start.h"
#include "train/train_state.h"
#include "train/weights.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

constexpr char kNothingTrained[] = "no step was trained yet, and nothing was recorded";

void require_same_experiment(const Start& start, const TrainConfig& config) {
  if (start.saved.experiment_digest == experiment_digest(config).hex()) return;
  std::string changes;
  for (const auto& change : differences(start.contents.config, to_json(config)))
    changes += "\n  " + change;
  throw Error(ErrorKind::kUsage, start.path.string() +
                                     ": was made with another config, so resuming would be another "
                                     "training (load_weights starts a new run from its weights):" +
                                     changes);
}

/// Where `--resume` leads; nothing if it says `latest` and nothing has been saved yet.
std::optional<Start> find_start(const SessionOptions& options, const TrainConfig& config) {
  if (!options.resume) return std::nullopt;
  if (*options.resume == "latest" &&
      (!fs::exists(options.run_dir) || store::list_checkpoints(options.run_dir).empty()))
    return std::nullopt;
  auto start = read_start(store::resolve_checkpoint(
      *options.resume == "latest" ? options.run_dir : fs::path(*options.resume)));
  require_same_experiment(start, config);
  return start;
}

/// OLMo's load_path: a new run that takes over weights, moments and counters.
std::optional<Start> find_load_path(const TrainConfig& config) {
  if (!config.load_path) return std::nullopt;
  if (config.reset_optimizer_state != config.reset_trainer_state) {
    throw Error(ErrorKind::kUsage,
                "`reset_optimizer_state` and `reset_trainer_state` must be equal here: to keep one "
                "without the other is not supported");
  }
  return read_start(store::resolve_checkpoint(*config.load_path));
}

void require_free_folder(const SessionOptions& options, const TrainConfig& config) {
  if (options.resume || config.save_overwrite) return;
  const auto there = store::list_checkpoints(options.run_dir);
  if (there.empty()) return;
  throw Error(
      ErrorKind::kUsage,
      options.run_dir.string() + ": already holds checkpoints of a run (the last is " +
          there.back().path.filename().string() +
          "): go on with --resume latest, choose another --run-dir, or set save_overwrite=true");
}

/// Refuses bad token files before anything is written. Ids are looked at here if that takes a
/// fraction of a second, else when their batch comes.
void check_data(const TrainConfig& config) {
  constexpr std::uint64_t kCheckIdsUpTo = std::uint64_t{1} << 30;
  const data::BatchSource source(batch_config(config));
  std::uint64_t bytes = 0;
  for (const auto& file : source.dataset().files())
    bytes += file.size() * data::bytes_per_token(file.dtype());
  if (bytes <= kCheckIdsUpTo) source.dataset().check_all_ids();
}

store::AttemptRecord describe_attempt(const Policy& policy, const std::optional<Start>& start,
                                      const std::string& command_line, const PeakFlops& peak) {
  Json where = environment_json();
  where["peak_flops"] = peak.value() ? Json(*peak.value()) : Json(nullptr);
  where["peak_source"] = peak.source();
  store::AttemptRecord attempt;
  if (start) {
    attempt.start_step = start->saved.state.step;
    attempt.resumed_from = start->path.string();
  }
  attempt.command_line = command_line;
  attempt.policy = json_text(policy_json(policy));
  attempt.build = json_text(build_json());
  attempt.environment = json_text(where);
  return attempt;
}

/// What the MFU of the progress line is a share of.
void say_peak(const PeakFlops& peak) {
  char text[64];
  std::snprintf(text, sizeof text, "MFU: of %.4g GFLOP/s, ", peak.value().value_or(0) / 1e9);
  log_line((peak.value() ? text : "MFU: ") + peak.source());
}

/// The run that this session continues: the checkpoint's; without one the database's latest, if it
/// is of this config.
std::optional<std::string> run_to_continue(const store::RunDb& db, const SessionOptions& options,
                                           const std::optional<Start>& start,
                                           const TrainConfig& config) {
  if (!options.resume) return std::nullopt;
  if (start)
    return db.has_run(start->saved.run_id) ? std::optional(start->saved.run_id) : std::nullopt;
  std::optional<std::string> found;
  db.query("SELECT run_id FROM runs WHERE experiment_digest = ? ORDER BY rowid DESC LIMIT 1",
           {experiment_digest(config).hex()},
           [&](const auto&, const auto& row) { found = std::get<std::string>(row[0]); });
  return found;
}

/// The record and the checkpoint must tell the same story.
void require_same_chain(const store::RunDb& db, const Start& start) {
  db.query("SELECT chain_hash FROM surviving_steps WHERE run_id = ? AND step = ?",
           {start.saved.run_id, start.saved.state.step}, [&](const auto&, const auto& row) {
             if (std::get<std::string>(row[0]) == start.saved.state.chain.hex()) return;
             throw Error(ErrorKind::kDamaged,
                         start.path.string() + ": its hash chain is not the one that " +
                             db.path().string() + " recorded for step " +
                             std::to_string(start.saved.state.step) +
                             ": they belong to different trainings, or one was altered");
           });
}

void begin_record(store::RunDb& db, const std::optional<std::string>& continued,
                  const store::AttemptRecord& attempt, Trainer& trainer, const TrainConfig& config,
                  const std::optional<fs::path>& tokenizer) {
  if (continued) {
    db.resume_run(*continued, attempt);
    db.event(attempt.start_step, "resume",
             attempt.resumed_from.value_or("from the start: no checkpoint had been saved"));
    return;
  }
  const std::vector<fs::path> masks(config.data.label_mask_paths.begin(),
                                    config.data.label_mask_paths.end());
  const auto weights =
      config.load_weights ? std::optional<fs::path>(*config.load_weights) : std::nullopt;
  store::RunRecord run{.name = config.run_name.value_or("run"),
                       .config = json_text(to_json(config)),
                       .experiment_digest = experiment_digest(config).hex(),
                       .seed = config.seed,
                       .n_parameters = model::count_parameters(config.model).total,
                       .max_steps = trainer.last_step()};
  db.begin_run(run, attempt,
               describe_inputs(trainer.batches().dataset(), masks, tokenizer, weights));
  db.event(attempt.start_step, "start",
           attempt.resumed_from  ? "from " + *attempt.resumed_from
           : config.load_weights ? "from the weights of " + *config.load_weights
                                 : "from initial weights");
}

const char* word_of(Outcome outcome) {
  return outcome == Outcome::kFinished ? "finished" : "stopped";
}

TrainResult train_and_record(Trainer& trainer, Evaluators& evaluators, store::RunDb& db,
                             const StopSignals& signals, const store::RunLock& lock) {
  EnergyMeter energy;
  try {
    const TrainResult result = trainer.run(signals, evaluators, energy);
    energy.finish(db);
    lock.require_held();
    db.event(result.step, result.outcome == Outcome::kFinished ? "finish" : "stop",
             "step " + std::to_string(result.step));
    db.end_attempt(word_of(result.outcome));
    db.flush();  // from here on a row that cannot be written is an error
    return result;
  } catch (const std::exception& error) {  // out of memory, too: the record says how it ended
    const auto* ours = dynamic_cast<const Error*>(&error);
    const bool diverged = ours != nullptr && ours->kind() == ErrorKind::kDiverged;
    if (!diverged) db.event(trainer.state().step, "error", error.what());
    energy.finish(db);
    db.end_attempt(diverged ? "diverged" : "failed");
    throw;
  }
}

}  // namespace

SessionResult run_session(const LoadedConfig& loaded, const SessionOptions& options) {
  require_no_blockers(loaded);
  const TrainConfig& config = loaded.config;
  const StopSignals signals;  // from here on a signal ends the run in order, not the process
  const Policy policy =
      resolve_policy(config.numerics, config.isa, static_cast<int>(config.threads), config.device);
  apply_policy(policy);
  std::vector<std::string> notes = loaded.notes;
  const auto tokenizer = check_named_tokenizer(config);
  if (tokenizer.note) notes.push_back(*tokenizer.note);
  check_data(config);
  Evaluators evaluators(config, tokenizer.path,
                        data::evaluation_data_folder(data::default_data_folder()));
  notes.insert(notes.end(), evaluators.notes().begin(), evaluators.notes().end());
  if (options.resume && *options.resume != "latest") store::resolve_checkpoint(*options.resume);
  const store::RunLock lock(options.run_dir);  // what follows reads and writes the folder
  store::remove_stale(options.run_dir);
  std::optional<Start> start = find_start(options, config);
  if (!options.resume) start = find_load_path(config);
  require_free_folder(options, config);

  const fs::path database =
      options.database.empty() ? options.run_dir / "run.db" : options.database;
  store::RunDb db = store::RunDb::open(database, store::OpenMode::kCreate);
  const auto continued = run_to_continue(db, options, start, config);
  if (start && continued) require_same_chain(db, *start);

  signals.throw_if_requested(kNothingTrained);
  const PeakFlops peak(policy);
  say_peak(peak);
  Trainer trainer(config, policy, options.run_dir, lock, db, peak);
  set_weights(trainer.model(), config, start);
  if (start && !(config.load_path && config.reset_trainer_state && !options.resume)) {
    trainer.restore(start->saved.state, optim_state_of(*start));
  }
  signals.throw_if_requested(kNothingTrained);
  begin_record(db, continued, describe_attempt(policy, start, options.command_line, peak), trainer,
               config, tokenizer.path);
  if (lock.broken()) db.event(trainer.state().step, "lock", *lock.broken());
  for (const auto& note : notes) db.event(trainer.state().step, "note", note);
  db.records().outlast_failures();
  start.reset();  // its tensors have been copied

  SessionResult result{.train = train_and_record(trainer, evaluators, db, signals, lock),
                       .run_id = db.run_id(),
                       .database = database};
  return result;
}

}  // namespace olmo::train
