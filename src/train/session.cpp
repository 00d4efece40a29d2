#include "train/session.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash_chain.h"
#include "core/json.h"
#include "core/log.h"
#include "energy/meter.h"
#include "model/model_size.h"
#include "models/read_weights.h"
#include "store/checkpoint_folder.h"
#include "store/provenance.h"
#include "store/run_identity.h"
#include "store/run_lock.h"
#include "train/peak_flops.h"
#include "train/preparation.h"
#include "train/resume.h"
#include "train/resume_checks.h"
#include "train/run_inputs.h"
#include "train/start.h"
#include "train/train_state.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

constexpr char kNothingTrained[] = "no step was trained yet, and nothing was recorded";

/// OLMo's load_path: a new run that takes over weights, moments and counters.
std::optional<Start> find_load_path(const config::TrainConfig& config) {
  if (!config.load_path) return std::nullopt;
  if (config.reset_optimizer_state != config.reset_trainer_state) {
    throw Error(ErrorKind::kUsage,
                "`reset_optimizer_state` and `reset_trainer_state` must be equal here: to keep one "
                "without the other is not supported");
  }
  return read_start(store::resolve_checkpoint(*config.load_path));
}

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

store::AttemptRecord describe_attempt(const Policy& policy, const std::optional<Start>& start,
                                      std::int64_t start_step, const std::string& command_line,
                                      const PeakFlops& peak) {
  Json where = store::environment_json();
  where["peak_flops"] = peak.value() ? Json(*peak.value()) : Json(nullptr);
  where["peak_source"] = peak.source();
  store::AttemptRecord attempt;
  attempt.start_step = start_step;
  if (start) attempt.resumed_from = start->path.string();
  attempt.command_line = command_line;
  attempt.policy = json_text(store::policy_json(policy));
  attempt.build = json_text(store::build_json());
  attempt.environment = json_text(where);
  return attempt;
}

/// What the MFU of the progress line is a share of.
void say_peak(const PeakFlops& peak) {
  char text[64];
  std::snprintf(text, sizeof text, "MFU: of %.4g GFLOP/s, ", peak.value().value_or(0) / 1e9);
  log_line((peak.value() ? text : "MFU: ") + peak.source());
}

void begin_record(store::RunDb& db, const std::optional<std::string>& continued,
                  const store::AttemptRecord& attempt, const Trainer& trainer,
                  const config::TrainConfig& config,
                  const std::vector<store::InputRecord>& inputs) {
  if (continued) {
    db.resume_run(*continued, attempt, trainer.last_step());
    db.event(attempt.start_step, "resume",
             attempt.resumed_from.empty() ? "from the start: no checkpoint had been saved"
                                          : attempt.resumed_from);
    return;
  }
  store::RunRecord run{.name = config.run_name.value_or("run"),
                       .config = json_text(to_json(config)),
                       .experiment_digest = config::experiment_digest(config).hex(),
                       .seed = config.seed,
                       .n_parameters = model::count_parameters(config.model).total,
                       .max_steps = trainer.last_step(),
                       .chain_format = kChainFormat};
  db.begin_run(run, attempt, inputs);
  db.event(attempt.start_step, "start",
           !attempt.resumed_from.empty() ? "from " + attempt.resumed_from
           : config.load_weights         ? "from the weights of " + *config.load_weights
                                         : "from initial weights");
}

/// Nothing is left to do, and the run is finished already: then it gets no attempt.
bool is_finished(const store::RunDb& db, const std::optional<std::string>& continued,
                 const Trainer& trainer) {
  if (!continued || trainer.state().step < trainer.last_step()) return false;
  return db.run(*continued).status == "finished";
}

fs::path database_of(const SessionOptions& options) {
  return options.database.empty() ? options.run_dir / "run.db" : options.database;
}

/// The digests of everything that decides the result: with those of the weights, if they are read.
std::vector<store::InputRecord> inputs_of(const Preparation& ready, const Resumption& resumption,
                                          const config::TrainConfig& config) {
  auto inputs = ready.inputs;
  if (resumption.start || !config.load_weights) return inputs;
  const auto weights = describe_weights(*config.load_weights);
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  return inputs;
}

/// What a start would find in the run folder and the database; reads only.
void check_start(const SessionOptions& options, const config::TrainConfig& config,
                 Preparation& ready, Problems& problems) {
  const fs::path database = database_of(options);
  Resumption resumption;
  problems.check([&] {
    if (options.resume && (*options.resume != "latest" || fs::exists(options.run_dir)))
      resumption = find_resumption(options, database, config);
  });
  problems.check([&] {
    if (resumption.start || find_load_path(config)) return;
    if (config.load_weights) models::read_weights(*config.load_weights, config.model);
  });
  problems.check([&] { require_writable_folder(options.run_dir); });
  problems.check([&] { store::require_unlocked(options.run_dir); });
  if (fs::exists(options.run_dir)) problems.check([&] { require_free_folder(options, config); });
  problems.check([&] {
    if (!store::holds_tables(database))
      return require_writable_folder(fs::absolute(database).parent_path());
    const auto db = store::RunDb::open(database, store::OpenMode::kReadOnly);
    if (!resumption.run_id || !ready.policy || !ready.batches) return;
    const auto inputs = inputs_of(ready, resumption, config);
    check_successor(db, *resumption.run_id, {config, *ready.policy, inputs, resumption.start},
                    *ready.batches);
  });
}

const char* word_of(Outcome outcome) {
  return outcome == Outcome::kFinished ? "finished" : "stopped";
}

TrainResult train_and_record(Trainer& trainer, evaluation::Evaluators& evaluators, store::RunDb& db,
                             const StopSignals& signals, const store::RunLock& lock) {
  energy::EnergyMeter energy;
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

TrainPlan plan_session(const config::LoadedConfig& loaded, const SessionOptions& options) {
  const config::TrainConfig& config = loaded.config;
  Problems problems;
  Preparation ready = prepare(loaded, problems);
  check_start(options, config, ready, problems);
  TrainPlan plan = make_plan(loaded, count_instances(config));
  plan.loaded.notes = ready.notes;
  plan.needs = needs_of(config, options.run_dir, plan.steps);
  for (auto& shortage : shortages(*plan.needs, options.run_dir))
    problems.add(Error(ErrorKind::kUsage, shortage));
  plan.problems = problems.all();
  if (ready.policy) plan.step_time = estimate_step_time(config, *ready.policy);
  return plan;
}

SessionResult run_session(const config::LoadedConfig& loaded, const SessionOptions& options) {
  const config::TrainConfig& config = loaded.config;
  const StopSignals signals;  // from here on a signal ends the run in order, not the process
  Problems problems;
  Preparation ready = prepare(loaded, problems);
  problems.check([&] { require_writable_folder(options.run_dir); });
  problems.check([&] {
    if (options.resume && *options.resume != "latest") store::resolve_checkpoint(*options.resume);
  });
  problems.throw_if_any();
  for (const auto& note : ready.notes) log_line("note: " + note);
  for (const auto& shortage : shortages(needs_of(config, options.run_dir, {}), options.run_dir))
    log_warning(shortage);
  const Policy& policy = *ready.policy;
  evaluation::Evaluators& evaluators = *ready.evaluators;
  std::vector<ResumeEvent> events;
  for (const auto& note : ready.notes) events.push_back({"note", note});
  const store::RunLock lock(options.run_dir);  // what follows reads and writes the folder
  store::remove_stale(options.run_dir);
  if (lock.broken()) events.push_back({"lock", *lock.broken()});
  require_free_folder(options, config);

  const fs::path database = database_of(options);
  Resumption resumption;
  if (options.resume) resumption = find_resumption(options, database, config);
  events.insert(events.end(), resumption.events.begin(), resumption.events.end());
  const bool takes_over = !resumption.start && config.load_path;
  const auto inputs = inputs_of(ready, resumption, config);
  store::RunDb db = store::RunDb::open(database, store::OpenMode::kCreate);
  const auto& continued = resumption.run_id;
  if (continued) {
    const Successor successor{config, policy, inputs, resumption.start};
    for (const auto& change : check_successor(db, *continued, successor, *ready.batches))
      events.push_back({"change", change});
  }
  ready.batches.reset();  // the trainer has its own
  std::optional<Start> start = std::move(resumption.start);
  if (takes_over) start = find_load_path(config);

  signals.throw_if_requested(kNothingTrained);
  const PeakFlops peak(policy);
  say_peak(peak);
  Trainer trainer(config, policy, options.run_dir, lock, db, peak);
  set_weights(trainer.model(), config, start);
  if (start && !(takes_over && config.reset_trainer_state))
    trainer.restore(start->saved.state, optim_state_of(*start));
  if (is_finished(db, continued, trainer)) {
    const auto step = trainer.state().step;
    return {
        {.step = step, .first_step = step + 1, .checkpoint = start->path}, *continued, database};
  }
  signals.throw_if_requested(kNothingTrained);
  const auto attempt =
      describe_attempt(policy, start, trainer.state().step, options.command_line, peak);
  begin_record(db, continued, attempt, trainer, config, inputs);
  store::write_identity(options.run_dir, db.run_id(), database);
  for (const auto& [kind, message] : events) db.event(trainer.state().step, kind, message);
  db.records().outlast_failures();
  start.reset();  // its tensors have been copied

  SessionResult result{.train = train_and_record(trainer, evaluators, db, signals, lock),
                       .run_id = db.run_id(),
                       .database = database};
  return result;
}

}  // namespace olmo::train
