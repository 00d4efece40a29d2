#include "train/session.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/terminal.h"
#include "core/text.h"
#include "model/model_config.h"
#include "models/read_weights.h"
#include "store/checkpoint_folder.h"
#include "store/provenance.h"
#include "store/run_folder.h"
#include "train/preparation.h"
#include "train/resume.h"
#include "train/resume_checks.h"
#include "train/shared_order.h"
#include "train/speed.h"
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
  where["peak_flops"] = or_null(peak.value());
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
  const std::string share = peak.value() ? formatted("of %.4g GFLOP/s, ", *peak.value() / 1e9) : "";
  log_line("MFU: " + share + peak.source());
}

/// Where a start finds itself, once the folder is its own.
struct Beginning {
  std::optional<std::string> continued;    ///< the run that goes on; nothing: a new one
  std::optional<Start> start;              ///< a checkpoint: of that run, or load_path's
  bool with_state = false;                 ///< its counters and moments, too
  std::vector<store::InputRecord> inputs;  ///< whatever decides the result
  std::vector<ResumeEvent> events;         ///< that the record must tell
};

/// The attempt's row, of a new run or of the one that goes on, and the events of the start.
void begin_record(store::RunDb& db, const Beginning& beginning, const store::AttemptRecord& attempt,
                  const Stepper& stepper) {
  if (beginning.continued) {
    db.resume_run(*beginning.continued, attempt, stepper.last_step());
    db.event(attempt.start_step, "resume",
             attempt.resumed_from.empty() ? "from the start: no checkpoint had been saved"
                                          : attempt.resumed_from);
    return;
  }
  const config::TrainConfig& config = stepper.config();
  store::RunRecord run{.name = config.run_name.value_or("run"),
                       .config = json_text(to_json(config)),
                       .experiment_digest = config::experiment_digest(config).hex(),
                       .seed = config.seed,
                       .n_parameters = model::count_parameters(config.model).total,
                       .max_steps = stepper.last_step(),
                       .chain_format = kChainFormat};
  db.begin_run(run, attempt, beginning.inputs);
  db.event(attempt.start_step, "start",
           !attempt.resumed_from.empty() ? "from " + attempt.resumed_from
           : config.load_weights         ? "from the weights of " + *config.load_weights
                                         : "from initial weights");
}

/// Nothing is left to do, and the run is finished already: then it gets no attempt.
bool is_finished(const store::RunDb& db, const std::optional<std::string>& continued,
                 const Stepper& stepper) {
  if (!continued || stepper.state().step < stepper.last_step()) return false;
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

/// Sequences in the data, if it could be read.
std::optional<std::int64_t> instances_of(const Preparation& ready) {
  if (!ready.batches) return std::nullopt;
  return static_cast<std::int64_t>(ready.batches->dataset().size());
}

/// What a start needs beside its folder; throws all that is wrong with it at once.
Preparation prepare_start(const config::LoadedConfig& loaded, const SessionOptions& options) {
  Problems problems;
  Preparation ready = prepare(loaded, problems);
  problems.check([&] { require_writable_folder(options.run_dir); });
  problems.check([&] {
    if (options.resume && *options.resume != "latest") store::resolve_checkpoint(*options.resume);
  });
  problems.throw_if_any();
  for (const auto& note : ready.notes) log_line("note: " + note);
  const auto memory = memory_of(loaded.config, {}, instances_of(ready));
  const Needs needs = needs_of(loaded.config, memory, options.run_dir, {});
  for (const auto& shortage : shortages(needs, options.run_dir)) log_warning(shortage);
  return ready;
}

/// Looks into the run folder, which is locked by now, for what to go on with.
Beginning find_beginning(const SessionOptions& options, const config::TrainConfig& config,
                         const Preparation& ready, const store::RunLock& lock) {
  Beginning beginning;
  auto& events = beginning.events;
  for (const auto& note : ready.notes) events.push_back({"note", note});
  store::remove_stale(options.run_dir);
  if (lock.broken()) events.push_back({"lock", *lock.broken()});
  require_free_folder(options, config);
  Resumption resumption;
  if (options.resume) resumption = find_resumption(options, database_of(options), config);
  events.insert(events.end(), resumption.events.begin(), resumption.events.end());
  beginning.inputs = inputs_of(ready, resumption, config);
  beginning.continued = resumption.run_id;
  beginning.start = std::move(resumption.start);
  beginning.with_state = beginning.start || !config.reset_trainer_state;
  return beginning;
}

/// Compares the start with the run that it continues: what has changed is an event, or refused.
void note_changes(Beginning& beginning, const store::RunDb& db, const config::TrainConfig& config,
                  Preparation& ready) {
  if (!beginning.continued) return;
  const Successor successor{config, *ready.policy, beginning.inputs, beginning.start};
  for (const auto& change : check_successor(db, *beginning.continued, successor, *ready.batches))
    beginning.events.push_back({"change", change});
}

}  // namespace

TrainPlan plan_session(const config::LoadedConfig& loaded, const SessionOptions& options) {
  const config::TrainConfig& config = loaded.config;
  Problems problems;
  Preparation ready = prepare(loaded, problems);
  check_start(options, config, ready, problems);
  TrainPlan plan = make_plan(loaded, instances_of(ready));
  plan.loaded.notes = ready.notes;
  plan.needs = needs_of(config, plan.memory, options.run_dir, plan.steps);
  for (auto& shortage : shortages(*plan.needs, options.run_dir))
    problems.add(Error(ErrorKind::kUsage, shortage));
  plan.problems = problems.all();
  if (ready.policy) plan.step_time = estimate_step_time(config, *ready.policy);
  return plan;
}

SessionResult run_session(const config::LoadedConfig& loaded, const SessionOptions& options) {
  const config::TrainConfig& config = loaded.config;
  const StopSignals signals;  // from here on a signal ends the run in order, not the process
  Preparation ready = prepare_start(loaded, options);
  const store::RunLock lock(options.run_dir);  // what follows reads and writes the folder
  Beginning beginning = find_beginning(options, config, ready, lock);
  const fs::path database = database_of(options);
  store::RunDb db = store::RunDb::open(database, store::OpenMode::kCreate);
  ready.batches->keep_orders_in(options.run_dir / "train_data",
                                data::BatchSource::OrderRole::kMaker);
  note_changes(beginning, db, config, ready);
  if (!beginning.start) beginning.start = find_load_path(config);
  signals.throw_if_requested(kNothingTrained);

  const PeakFlops peak(*ready.policy);
  say_peak(peak);
  Stepper stepper(config, *ready.policy, std::move(*ready.batches));
  begin_at(stepper, beginning.start, beginning.with_state);
  const auto step = stepper.state().step;
  if (is_finished(db, beginning.continued, stepper)) {
    return {{.step = step, .first_step = step + 1, .checkpoint = beginning.start->path},
            *beginning.continued,
            database};
  }
  signals.throw_if_requested(kNothingTrained);
  share_order(stepper.batches(), *dist::alone(), /*first_of_node=*/true, step + 1);
  const auto attempt =
      describe_attempt(*ready.policy, beginning.start, step, options.command_line, peak);
  begin_record(db, beginning, attempt, stepper);
  store::write_identity(options.run_dir, db.run_id(), database);
  for (const auto& [kind, message] : beginning.events) db.event(step, kind, message);
  db.records().outlast_failures();

  const bool resumed = beginning.start && beginning.with_state;
  Recorder recorder(options.run_dir, lock, db);
  const auto alone = dist::alone();
  const TrainingParts parts{.ranks = *alone,
                            .recorder = recorder,
                            .evaluators = *ready.evaluators,
                            .signals = signals,
                            .peak = peak,
                            .resumed = resumed};
  return {train(stepper, parts), db.run_id(), database};
}

}  // namespace olmo::train
