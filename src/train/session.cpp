#include "train/session.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/process_identity.h"
#include "core/terminal.h"
#include "core/text.h"
#include "dist/agreement.h"
#include "dist/exchange.h"
#include "dist/together.h"
#include "model/model_config.h"
#include "models/read_weights.h"
#include "store/checkpoint_folder.h"
#include "store/provenance.h"
#include "store/recorded_run.h"
#include "store/run_folder.h"
#include "train/agreement.h"
#include "train/placement.h"
#include "train/preparation.h"
#include "train/rank_checkpoint.h"
#include "train/rank_plan.h"
#include "train/resume.h"
#include "train/resume_checks.h"
#include "train/shared_order.h"
#include "train/speed.h"
#include "train/train_state.h"
#include "train/world_record.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

constexpr char kNothingTrained[] = "no step was trained yet, and nothing was recorded";

/// OLMo's load_path: a new run that takes over weights, moments and counters.
std::optional<Start> find_load_path(const config::TrainConfig& config,
                                    const ReadStart& read = read_start) {
  if (!config.load_path) return std::nullopt;
  if (config.reset_optimizer_state != config.reset_trainer_state) {
    throw Error(ErrorKind::kUsage,
                "`reset_optimizer_state` and `reset_trainer_state` must be equal here: to keep one "
                "without the other is not supported");
  }
  return read(store::resolve_checkpoint(*config.load_path));
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

/// Where a start finds itself, once the folder is its own.
struct Beginning {
  std::optional<std::string> continued;    ///< the run that goes on; nothing: a new one
  std::optional<Start> start;              ///< a checkpoint: of that run, or load_path's
  bool with_state = false;                 ///< its counters and moments, too
  std::vector<store::InputRecord> inputs;  ///< whatever decides the result
  std::vector<ResumeEvent> events;         ///< that the record must tell
};

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
  return ready;
}

/// Looks into the run folder, which is locked by now, for what to go on with.
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

/// What must be the same on every rank before one of them touches the run folder.
std::vector<dist::Fact> facts_of(const config::TrainConfig& config, const Preparation& ready) {
  std::vector<dist::Fact> facts;
  facts.push_back({"config", json_text(without_placement(to_json(config)))});
  facts.push_back({"build", json_text(store::build_json())});
  const Json policy = store::policy_json(*ready.policy);
  Json computes = Json::object();  // under `portable` ranks of several kinds give the same bits
  for (const char* key : {"numerics", "precision"}) computes[key] = policy[key];
  if (policy["numerics"] == "fast")
    for (const char* key : {"device", "isa", "matrix_products"}) computes[key] = policy[key];
  facts.push_back({"policy", json_text(computes)});
  for (std::size_t i = 0; i < ready.inputs.size(); ++i) {
    const auto& [kind, path, bytes, sha256] = ready.inputs[i];
    facts.push_back(
        {kind + " " + std::to_string(i) + " (" + fs::path(path).filename().string() + ")",
         std::to_string(bytes) + " bytes, " + sha256});
  }
  facts.push_back({"evaluators that are left out", json_text(Json(ready.evaluators->notes()))});
  return facts;
}

/// The floating-point operations per second of all ranks, and how that is known.
struct PeakOfAll {
  std::optional<double> flops;  ///< nothing: a rank does not know its own
  std::string source;
};

PeakOfAll peak_of_all(dist::Communicator& ranks, const PeakFlops& peak) {
  double sum = 0;
  for (const double each : dist::all_gather_value(ranks, peak.value().value_or(0))) {
    if (each <= 0) return {std::nullopt, peak.source()};
    sum += each;
  }
  return {sum, peak.source_on(ranks.size())};
}

int hosts_of(const std::vector<store::RankRecord>& world) {
  std::set<std::string> hosts;
  for (const auto& rank : world) hosts.insert(rank.host);
  return static_cast<int>(hosts.size());
}

/// Ranks on the machine of rank 0, itself included.
std::int64_t ranks_beside(const std::vector<store::RankRecord>& world) {
  return std::ranges::count(world, world.front().host, &store::RankRecord::host);
}

/// A training from its config to its end, on one of its ranks.
class Session {
 public:
  Session(const config::LoadedConfig& loaded, const SessionOptions& options, const Ranks& ranks,
          const StopSignals& signals)
      : loaded_(loaded),
        config_(loaded.config),
        options_(options),
        place_(ranks),
        ranks_(ranks.communicator),
        signals_(signals),
        database_(database_of(options)) {}

  SessionResult run() {
    dist::together(ranks_, [&] { ready_ = prepare_start(loaded_, options_); });
    if (ranks_.size() > 1)
      dist::require_same(ranks_, facts_of(config_, ready_), own_identity().host);
    const auto world = describe_world(ranks_, *ready_.policy);
    decide(ranks_, [&] { take_folder(world); });  // what follows reads and writes the folder
    require_shared_folder(ranks_, options_.run_dir);
    find_start(hosts_of(world));
    end_if_asked();

    const PeakFlops peak(*ready_.policy);
    const PeakOfAll all = peak_of_all(ranks_, peak);
    Stepper stepper(config_, *ready_.policy, std::move(*ready_.batches), ranks_, hosts_of(world));
    begin_at(stepper, beginning_.start, beginning_.with_state);
    require_same_start(stepper);
    const auto step = stepper.state().step;
    if (is_finished(stepper)) {
      return {{.step = step, .first_step = step + 1, .checkpoint = beginning_.start->path},
              *beginning_.continued,
              database_};
    }
    end_if_asked();
    decide(ranks_, [&] {
      say_peak(all);
      begin_record(describe_attempt(stepper, all, store::devices_of(world)), stepper);
    });
    Recorder recorder = make_recorder();
    const bool resumed = beginning_.start && beginning_.with_state;
    const TrainingParts parts{.ranks = ranks_,
                              .world = world,
                              .recorder = recorder,
                              .evaluators = *ready_.evaluators,
                              .signals = signals_,
                              .peak = peak,
                              .resumed = resumed,
                              .at_step = place_.at_step};
    return {train(stepper, parts), recorder.run_id(), database_};
  }

 private:
  /// Of rank 0: the right to the folder.
  void take_folder(const std::vector<store::RankRecord>& world) {
    for (const auto& note : ready_.notes) log_line("note: " + note);
    const auto memory = memory_of(config_, {}, instances_of(ready_));
    Needs needs = needs_of(config_, memory, options_.run_dir, {});
    if (ranks_.size() > 1)
      needs.memory = plan_ranks(config_, ranks_.size(), {}).memory.total() * ranks_beside(world);
    for (const auto& shortage : shortages(needs, options_.run_dir)) log_warning(shortage);
    lock_.emplace(options_.run_dir);
  }

  /// Rank 0 looks for what to go on with; the other ranks learn what it has found, and read their
  /// parts of the same checkpoint.
  void find_start(int hosts) {
    const bool first = ranks_.rank() == 0;
    keep_orders(first ? data::BatchSource::OrderRole::kMaker
                      : data::BatchSource::OrderRole::kReader);
    ParameterParts parts;
    dist::together(ranks_,
                   [&] { parts = parts_of_rank(config_, ranks_.rank(), ranks_.size(), hosts); });
    RankCheckpoints checkpoints(ranks_.split(0), options_.run_dir, std::move(parts));
    StartSearch search(checkpoints, config::experiment_digest(config_).hex());
    std::exception_ptr error;
    try {
      search.run([&] { look_for_start(search); });
    } catch (const std::exception&) {  // of rank 0
      error = std::current_exception();
    }
    decide(ranks_, [&] {
      if (error) std::rethrow_exception(error);
    });
    beginning_.start = search.share(std::move(beginning_.start));
    const Json found = {{"continued", or_null(beginning_.continued)},
                        {"with_state", beginning_.with_state}};
    const Json of_first = Json::parse(dist::broadcast_text(ranks_, json_text(found), 0));
    if (first) return;
    if (!of_first["continued"].is_null()) beginning_.continued = of_first["continued"];
    beginning_.with_state = of_first["with_state"];
  }

  /// Of rank 0.
  void look_for_start(StartSearch& search) {
    const auto read = [&](const fs::path& path) { return search.read(path); };
    const auto read_any = [&](const fs::path& path) { return search.read(path, true); };
    beginning_ = find_beginning(options_, config_, ready_, *lock_, read);
    db_.emplace(store::RunDb::open(database_, store::OpenMode::kCreate));
    note_changes(beginning_, *db_, config_, ready_);
    if (!beginning_.start) beginning_.start = find_load_path(config_, read_any);
  }

  /// A large order of the data is made once, and lies where OLMo keeps its own.
  void keep_orders(data::BatchSource::OrderRole role) {
    ready_.batches->keep_orders_in(options_.run_dir / "train_data", role);
  }

  void require_same_start(const Stepper& stepper) {
    if (ranks_.size() == 1) return;
    const TrainState& state = stepper.state();
    const std::vector<dist::Fact> facts = {{"steps that are done", std::to_string(state.step)},
                                           {"hash chain", state.chain.hex()},
                                           {"tokens seen", std::to_string(state.tokens)}};
    dist::require_same(ranks_, facts, own_identity().host);
  }

  void end_if_asked() {
    dist::together(ranks_, [&] { signals_.throw_if_requested(kNothingTrained); });
  }

  /// Nothing is left to do, and the run is finished already: then it gets no attempt.
  bool is_finished(const Stepper& stepper) {
    if (!beginning_.continued || stepper.state().step < stepper.last_step()) return false;
    std::string status;
    decide(ranks_, [&] { status = db_->run(*beginning_.continued).status; });
    return dist::broadcast_text(ranks_, status, 0) == "finished";
  }

  /// What the MFU of the progress line is a share of.
  static void say_peak(const PeakOfAll& peak) {
    const std::string share = peak.flops ? formatted("of %.4g GFLOP/s, ", *peak.flops / 1e9) : "";
    log_line("MFU: " + share + peak.source);
  }

  /// `devices`: among which the peak is divided, since reports reckon with that of one.
  [[nodiscard]] store::AttemptRecord describe_attempt(const Stepper& stepper, const PeakOfAll& peak,
                                                      std::int64_t devices) const {
    Json where = store::environment_json();
    where["peak_flops"] = peak.flops ? Json(*peak.flops / static_cast<double>(devices)) : Json();
    where["peak_source"] = peak.source;
    store::AttemptRecord attempt;
    attempt.start_step = stepper.state().step;
    if (beginning_.start) attempt.resumed_from = beginning_.start->path.string();
    attempt.command_line = options_.command_line;
    attempt.policy = json_text(store::policy_json(*ready_.policy));
    attempt.build = json_text(store::build_json());
    attempt.environment = json_text(where);
    attempt.world_size = ranks_.size();
    attempt.strategy = strategy_name(config_, ranks_.size());
    attempt.launch = place_.launch;
    return attempt;
  }

  /// The attempt's row, of a new run or of the one that goes on, and the events of the start.
  void begin_record(const store::AttemptRecord& attempt, const Stepper& stepper) {
    if (beginning_.continued) {
      db_->resume_run(*beginning_.continued, attempt, stepper.last_step());
      db_->event(attempt.start_step, "resume",
                 attempt.resumed_from.empty() ? "from the start: no checkpoint had been saved"
                                              : attempt.resumed_from);
    } else {
      begin_run(attempt, stepper);
    }
    store::write_identity(options_.run_dir, db_->run_id(), database_);
    for (const auto& [kind, message] : beginning_.events)
      db_->event(attempt.start_step, kind, message);
    db_->records().outlast_failures();
  }

  void begin_run(const store::AttemptRecord& attempt, const Stepper& stepper) {
    store::RunRecord run{.name = config_.run_name.value_or("run"),
                         .config = json_text(to_json(config_)),
                         .experiment_digest = config::experiment_digest(config_).hex(),
                         .seed = config_.seed,
                         .n_parameters = model::count_parameters(config_.model).total,
                         .max_steps = stepper.last_step(),
                         .chain_format = kChainFormat};
    db_->begin_run(run, attempt, beginning_.inputs);
    db_->event(attempt.start_step, "start",
               !attempt.resumed_from.empty() ? "from " + attempt.resumed_from
               : config_.load_weights        ? "from the weights of " + *config_.load_weights
                                             : "from initial weights");
  }

  /// Rank 0's writes; those of the others know the run.
  Recorder make_recorder() {
    Json run = {{"run_id", ""}, {"attempt", 0}};
    if (db_) run = {{"run_id", db_->run_id()}, {"attempt", db_->attempt()}};
    run = Json::parse(dist::broadcast_text(ranks_, json_text(run), 0));
    if (db_) return {options_.run_dir, *lock_, *db_};
    return {options_.run_dir, run["run_id"].get<std::string>(), run["attempt"].get<std::int64_t>()};
  }

  const config::LoadedConfig& loaded_;
  const config::TrainConfig& config_;
  const SessionOptions& options_;
  const Ranks& place_;
  dist::Communicator& ranks_;
  const StopSignals& signals_;
  fs::path database_;
  Preparation ready_;
  std::optional<store::RunLock> lock_;  ///< of rank 0, as is the database
  std::optional<store::RunDb> db_;
  Beginning beginning_;
};

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

SessionResult run_session(const config::LoadedConfig& loaded, const SessionOptions& options,
                          const Ranks& ranks, const StopSignals& signals) {
  return Session(loaded, options, ranks, signals).run();
}

SessionResult run_session(const config::LoadedConfig& loaded, const SessionOptions& options) {
  const StopSignals signals;  // from here on a signal ends the run in order, not the process
  const auto alone = dist::alone();
  return run_session(loaded, options, {.communicator = *alone}, signals);
}

}  // namespace olmo::train
