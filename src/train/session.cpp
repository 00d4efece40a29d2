#include "train/session.h"

#include <new>
#include <set>

#include <nlohmann/json.hpp>

#include "config/run_columns.h"
#include "core/compute/fresh_pages.h"
#include "core/compute/machine.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/memory_error.h"
#include "core/process/activity.h"
#include "core/process/terminal.h"
#include "core/process_identity.h"
#include "core/text/text.h"
#include "dist/agreement.h"
#include "dist/exchange.h"
#include "dist/together.h"
#include "model/model_config.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/run_files.h"
#include "store/runs/policy_json.h"
#include "store/runs/provenance.h"
#include "store/runs/recorded_run.h"
#include "store/runs/run_facts.h"
#include "store/runs/run_folder.h"
#include "train/beginning.h"
#include "train/placement.h"
#include "train/preparation.h"
#include "train/rank_checkpoint.h"
#include "train/rank_plan.h"
#include "train/resume.h"
#include "train/resume_checks.h"
#include "train/shared_inputs.h"
#include "train/speed.h"
#include "train/train_state.h"
#include "train/world_record.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

constexpr char kNothingTrained[] = "no step was trained yet, and nothing was recorded";

/// Sequences in the data, if it could be read.
std::optional<std::int64_t> instances_of(const Preparation& ready) {
  if (!ready.batches) return std::nullopt;
  return static_cast<std::int64_t>(ready.batches->dataset().size());
}

/// What the evaluators take, if it is known which there are.
std::optional<evaluation::EvaluationMemory> memory_of_evaluators(const Preparation& ready) {
  if (!ready.evaluators) return std::nullopt;
  return ready.evaluators->memory();
}

/// Of the machine's memory, of a process alone. `steps`: unknown, if the config counts epochs.
NeededMemory memory_of_process(std::optional<std::int64_t> steps,
                               std::optional<std::int64_t> instances,
                               std::optional<evaluation::EvaluationMemory> evaluators) {
  return [=](const config::TrainConfig& config) {
    return memory_of(config, steps, instances, evaluators).on_host(config.device);
  };
}

/// The same of one of `ranks` on so many machines, of which so many are on this one.
NeededMemory memory_of_ranks(int ranks, int nodes, int beside) {
  return [=](const config::TrainConfig& config) {
    return memory_of_rank(config, ranks, nodes).on_host(config.device) * beside;
  };
}

/// Of the memory in which a process computes: the GPU's where there is one.
NeededMemory memory_where_it_computes(int ranks, int nodes) {
  return [=](const config::TrainConfig& config) {
    const auto short_of = [&](const auto& memory) {
      return memory.total() - (config.device == "cpu" ? 0 : memory.on_host(config.device));
    };
    return ranks > 1 ? short_of(memory_of_rank(config, ranks, nodes))
                     : short_of(memory_of(config, planned_steps(config)));
  };
}

/// What a start needs beside its folder; throws all that is wrong with it at once.
Preparation prepare_start(const config::LoadedConfig& loaded, const SessionOptions& options,
                          InputDigests digests, const LocalRank& local) {
  Problems problems;
  Preparation ready = prepare(loaded, problems, digests, local);
  problems.check([&] { require_writable_folder(options.run_dir); });
  problems.check([&] {
    if (options.resume && *options.resume != store::kLatestName)
      store::resolve_checkpoint(*options.resume);
  });
  problems.throw_if_any();
  return ready;
}

/// What must be the same on every rank before one of them touches the run folder; the input files
/// come after it.
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
  facts.push_back({"load_weights", config.load_weights ? "given" : "none"});
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
    if (each <= 0) return {std::nullopt, peak.value() ? "unknown on another rank" : peak.source()};
    sum += each;
  }
  return {sum, peak.source_on(ranks.size())};
}

int hosts_of(const std::vector<store::RankRecord>& world) {
  std::set<std::string> hosts;
  for (const auto& rank : world) hosts.insert(rank.host);
  return static_cast<int>(hosts.size());
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
        database_(database_of(options)),
        activity_(ranks.communicator.rank() == 0) {}

  SessionResult run() {
    const bool alone = ranks_.size() == 1;
    activity_.now("reading tokenizer and token files");
    dist::together(ranks_, [&] {
      ready_ = prepare_start(loaded_, options_, alone ? InputDigests::kNow : InputDigests::kLater,
                             place_.local);
    });
    if (!alone) require_same_everywhere();
    activity_.now("looking for what to go on with in " + options_.run_dir.string());
    const auto world = describe_world(ranks_, *ready_.policy);
    dist::decide(ranks_, [&] { take_folder(world); });  // what follows reads and writes the folder
    require_shared_folder(ranks_, options_.run_dir);
    find_start(hosts_of(world));
    end_if_asked();

    activity_.now("measuring this machine");
    const PeakFlops peak(*ready_.policy, ranks_beside(world, ranks_.rank()));
    const PeakOfAll all = peak_of_all(ranks_, peak);
    activity_.now(beginning_.start       ? "taking over the checkpoint"
                  : config_.load_weights ? "reading " + *config_.load_weights
                                         : "drawing the initial weights");
    Stepper stepper(config_, *ready_.policy, std::move(*ready_.batches), ranks_, hosts_of(world));
    // Where every core computes, whoever writes first takes the pages.
    const FreshPages pages(
        stepper.reserve_memory(),
        usable_cores().usable - stepper.policy().threads * ranks_beside(world, ranks_.rank()));
    begin_at(stepper, beginning_.start, beginning_.start_of, beginning_.weights);
    require_same_start(stepper);
    activity_.done();
    const auto step = stepper.state().step;
    if (is_finished(stepper)) {
      return {{.step = step, .first_step = step + 1, .checkpoint = beginning_.start->path},
              *beginning_.continued,
              database_};
    }
    end_if_asked();
    dist::decide(ranks_, [&] {
      log_line(mfu_line(all.flops, all.source));
      begin_record(describe_attempt(stepper, all, store::devices_of(world)), stepper);
    });
    Recorder recorder = make_recorder();
    const bool resumed = beginning_.start && step > 0;
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
  void require_same_everywhere() {
    const std::string host = own_identity().host;
    dist::require_same(ranks_, facts_of(config_, ready_), host);
    ready_.inputs = describe_shared_inputs(ranks_, ready_.input_files);
    dist::require_same(ranks_, facts_of_inputs(ready_.inputs), host);
  }

  /// Of rank 0: the right to the folder.
  void take_folder(const std::vector<store::RankRecord>& world) {
    if (auto note = note_of_waiting_ranks(config_, ranks_.size()))
      ready_.notes.push_back(*std::move(note));
    if (!ready_.notes.empty()) activity_.done();
    for (const auto& note : ready_.notes) log_line("note: " + note);
    const auto memory =
        ranks_.size() > 1 ? memory_of_ranks(ranks_.size(), hosts_of(world), ranks_beside(world, 0))
                          : memory_of_process(planned_steps(config_), instances_of(ready_),
                                              memory_of_evaluators(ready_));
    const Needs needs = needs_of(config_, memory, options_.run_dir, {});
    for (const auto& shortage : shortages(needs, config_, options_.run_dir)) log_warning(shortage);
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
    } catch (const std::exception&) {
      if (!first) throw;  // the others wait for this rank in the search: their watch tells them
      error = std::current_exception();
    }
    dist::decide(ranks_, [&] {
      if (error) std::rethrow_exception(error);
    });
    beginning_.start = search.share(std::move(beginning_.start));
    const Json found = {{"continued", or_null(beginning_.continued)},
                        {"own", beginning_.start_of == StartOf::kThisRun}};
    const Json of_first = Json::parse(dist::broadcast_text(ranks_, json_text(found), 0));
    if (first) return;
    if (!of_first["continued"].is_null()) beginning_.continued = of_first["continued"];
    if (of_first["own"]) beginning_.start_of = StartOf::kThisRun;
  }

  /// Of rank 0.
  void look_for_start(StartSearch& search) {
    const auto read = [&](const fs::path& path) { return search.read(path); };
    const auto read_any = [&](const fs::path& path) { return search.read(path, true); };
    beginning_ = find_beginning(options_, config_, ready_, *lock_, read);
    open_database();
    if (beginning_.start) return;
    beginning_.start = find_load_path(config_, read_any);
    const auto instances = ready_.batches->dataset().size();
    for (const auto& note : notes_of_beginning(beginning_.start, config_, instances)) {
      log_line("note: " + note);
      beginning_.events.push_back({"note", note});
    }
  }

  /// Of rank 0. A database that is not there is made as the run begins: a start that fails before,
  /// for want of memory or of a library, leaves none.
  void open_database() {
    if (!beginning_.continued && !store::holds_tables(database_))
      return require_place_for(database_);
    db_.emplace(store::RunDb::open(database_, store::OpenMode::kReadWrite));
    note_changes(beginning_, *db_, config_, ready_);
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
    dist::decide(ranks_, [&] { status = db_->run(*beginning_.continued).status; });
    return dist::broadcast_text(ranks_, status, 0) == "finished";
  }

  /// `devices`: among which the peak is divided, since reports reckon with that of one.
  [[nodiscard]] store::AttemptRecord describe_attempt(const Stepper& stepper, const PeakOfAll& peak,
                                                      std::int64_t devices) const {
    Json where = store::environment_json();
    where["peak_flops"] = peak.flops ? Json(*peak.flops / static_cast<double>(devices)) : Json();
    where["peak_source"] = peak.source;
    store::AttemptRecord attempt;
    attempt.start_step = stepper.state().step;
    attempt.start_link = stepper.state().chain.hex();
    const auto place =
        stepper.batches().position_after(static_cast<std::uint64_t>(attempt.start_step));
    attempt.start_epoch = static_cast<std::int64_t>(place.epoch);
    attempt.start_instance = static_cast<std::int64_t>(place.instance);
    if (beginning_.start) attempt.resumed_from = beginning_.start->path.string();
    attempt.command_line = options_.command_line;
    attempt.policy = json_text(store::policy_json(*ready_.policy));
    attempt.build = json_text(store::build_json());
    attempt.environment = json_text(where);
    attempt.world_size = ranks_.size();
    attempt.strategy = config::strategy_name(config_, ranks_.size());
    attempt.launch = place_.launch;
    return attempt;
  }

  /// The attempt's row, of a new run or of the one that goes on, and the events of the start.
  void begin_record(const store::AttemptRecord& attempt, const Stepper& stepper) {
    if (!db_) db_.emplace(store::RunDb::open(database_, store::OpenMode::kCreate));
    if (beginning_.continued) {
      db_->resume_run(*beginning_.continued, attempt, stepper.last_step());
      db_->event(attempt.start_step, "resume",
                 store::start_message("resume", attempt.resumed_from, ""));
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
    db_->event(
        attempt.start_step, "start",
        store::start_message("start", attempt.resumed_from, config_.load_weights.value_or("")));
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
  Activity activity_;
};

}  // namespace

TrainPlan plan_session(const config::LoadedConfig& loaded, const SessionOptions& options) {
  const config::TrainConfig& config = loaded.config;
  Problems problems;
  Preparation ready = prepare(loaded, problems);
  const PlannedStart start = check_beginning(options, config, ready, problems);
  const auto instances = instances_of(ready);
  const auto evaluators = memory_of_evaluators(ready);
  TrainPlan plan = make_plan(loaded, instances, evaluators, start);
  plan.loaded.notes = ready.notes;
  plan.needs = needs_of(config, memory_of_process(plan.steps, instances, evaluators),
                        options.run_dir, plan.steps);
  for (auto& shortage : shortages(*plan.needs, config, options.run_dir))
    problems.add(Error(ErrorKind::kUsage, shortage));
  plan.problems = problems.all();
  if (ready.policy) plan.step_time = estimate_step_time(config, *ready.policy);
  return plan;
}

SessionResult run_session(const config::LoadedConfig& loaded, const SessionOptions& options,
                          const Ranks& ranks, const StopSignals& signals) {
  const auto with_advice = [&](const std::string& problem) {
    const int size = ranks.communicator.size();
    const int nodes = (size + ranks.local.size - 1) / ranks.local.size;
    return MemoryError(problem + "; " +
                       ways_to_need_less(loaded.config, memory_where_it_computes(size, nodes)));
  };
  try {
    return Session(loaded, options, ranks, signals).run();
  } catch (const MemoryError& error) {
    throw with_advice(error.what());
  } catch (const std::bad_alloc&) {
    throw with_advice("there is no memory left");
  }
}

}  // namespace olmo::train
