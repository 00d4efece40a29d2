// What `olmo-harness train` does.
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/compute/compute.h"
#include "cli/compute/rank_options.h"
#include "cli/eval_records.h"
#include "cli/next_steps.h"
#include "config/cluster.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "data/public/tokenizers.h"
#include "store/run_files.h"
#include "train/plan.h"
#include "train/rank_plan.h"
#include "train/session.h"

namespace olmo::cli::compute {
namespace {

int exit_code_of(train::Outcome outcome) {
  switch (outcome) {
    case train::Outcome::kStopped:
      return static_cast<int>(ErrorKind::kStopped);
    case train::Outcome::kInterrupted:
      return static_cast<int>(ErrorKind::kInterrupted);
    case train::Outcome::kFinished:
      break;
  }
  return 0;
}

/// Prints the plan. Throws Error(kUsage) that counts the problems: a dry run ends with 2 whatever
/// the start's own exit code would be, which the JSON has.
void print_plan(const train::TrainPlan& plan, bool json) {
  if (json) {
    std::cout << json_text(train::to_json(plan), 2) << "\n";
  } else {
    std::cout << train::to_text(plan);
  }
  std::cout.flush();
  if (plan.problems.empty()) return;
  std::string text = "train --dry-run: this run would not start:";
  for (const auto& problem : plan.problems) text += std::string("\n  ") + problem.what();
  throw Error(ErrorKind::kUsage, text);
}

/// The plan of a run on many ranks, which asks nothing of this machine.
int print_rank_plan(const config::LoadedConfig& loaded, const TrainOptions& options) {
  config::Cluster cluster;
  if (!options.cluster.empty()) cluster = config::read_cluster(options.cluster);
  const auto plan = train::plan_ranks(loaded.config, static_cast<int>(options.world_size), cluster);
  if (options.json) {
    std::cout << json_text(train::to_json(plan), 2) << "\n";
  } else {
    std::cout << train::to_text(plan, cluster);
  }
  std::cout.flush();
  if (plan.problems.empty()) return 0;
  std::string text = "train --dry-run: this run would not fit:";
  for (const auto& problem : plan.problems) text += "\n  " + problem;
  throw Error(ErrorKind::kUsage, text);
}

/// What can be done with a run that has a checkpoint, of that what this machine can do now. A
/// folder names its run where it has the database of its own.
std::vector<NextStep> after_training(const train::SessionResult& result,
                                     const config::TrainConfig& config) {
  const auto folder = result.train.checkpoint->parent_path();
  const std::string run = result.database == folder / store::kRunDatabaseName
                              ? folder.string()
                              : result.database.string() + ":" + result.run_id;
  std::vector<NextStep> steps = {
      {{"report", "run", run, "--out", (folder / "run.html").string()}, "its page"}};
  if (data::find_tokenizer(config.tokenizer.identifier) && has_fetched_tasks())
    steps.push_back({{"eval", folder.string(), "--limit", "100"}, "its scores"});
  // The first steps of a run that began from another's checkpoint have none of its own before them.
  if (result.train.step > 0 && !config.load_path)
    steps.push_back({{"audit", run, "--sample", "1"}, "some steps again, bit for bit"});
  return steps;
}

/// What to type to go on: the words that started this process, from the newest checkpoint.
std::string command_to_go_on() {
  const auto words = command_words();
  std::vector<std::string> again;
  for (std::size_t i = 0; i < words.size(); ++i) {
    // Where this start began says nothing of the next, and --branch-from would begin another run.
    const std::string option = words[i].substr(0, words[i].find('='));
    if (option == "--resume" || option == "--branch-from") {
      if (option == words[i]) ++i;
      continue;
    }
    again.push_back(words[i]);
  }
  again.insert(again.end(), {"--resume", store::kLatestName});
  return shell_line(again);
}

void print_result(const train::SessionResult& result, const config::TrainConfig& config,
                  const TrainOptions& options) {
  const train::TrainResult& train = result.train;
  const bool finished = train.outcome == train::Outcome::kFinished;
  const bool trained = train.step >= train.first_step;
  if (options.json) {
    const auto if_trained = [&](double value) { return trained ? Json(value) : Json(); };
    const Json summary = {{"run_id", result.run_id},
                          {"database", result.database.string()},
                          {"outcome", finished ? "finished" : "stopped"},
                          {"step", train.step},
                          {"first_step", train.first_step},
                          {"first_ce_loss", if_trained(train.first_loss)},
                          {"ce_loss", if_trained(train.last_loss)},
                          {"tokens_per_second", if_trained(train.tokens_per_second)},
                          {"checkpoint", or_null(train.checkpoint)}};
    std::cout << json_text(summary, 2) << "\n";
    return;
  }
  const std::string end =
      (finished ? "finished at step " : "stopped at step ") + std::to_string(train.step);
  if (trained) {
    log_line(end + formatted("; ce_loss %.4f -> %.4f; %.0f tokens/s", train.first_loss,
                             train.last_loss, train.tokens_per_second));
  } else {
    log_line(finished ? "the run is " + end + ": no step was left to train"
                      : end + " before a step was trained");
  }
  log_line("run " + result.run_id + " in " + result.database.string());
  if (train.checkpoint) log_line("checkpoint " + train.checkpoint->string());
  if (!finished) {
    log_line("go on with: " + command_to_go_on());
  } else if (train.checkpoint) {
    say_next(after_training(result, config));
  }
}

int run(const TrainOptions& options, dist::World& world) {
  const StopSignals signals;  // from here on a signal ends the run in order, not the process
  std::vector<std::string> overrides = options.overrides;
  // Where the run goes is said already: OLMo's own files name folders of other machines.
  if (!options.run_dir.empty()) {
    if (!is_utf8(options.run_dir))
      throw Error(ErrorKind::kUsage,
                  "--run-dir " + options.run_dir + ": the name of a run folder must be UTF-8");
    overrides.insert(overrides.begin(), "save_folder=" + Json(options.run_dir).dump());
  }
  if (!options.branch_from.empty())
    overrides.insert(overrides.begin(), "load_path=" + Json(options.branch_from).dump());
  const auto loaded = config::load_config(options.config, overrides);
  if (!options.branch_from.empty() &&
      (loaded.config.load_path != options.branch_from || !options.resume.empty()))
    throw Error(ErrorKind::kUsage,
                "--branch-from begins a run of its own, at one checkpoint: leave out --resume and "
                "load_path");
  if (options.world_size != 0 || !options.cluster.empty()) {
    if (!options.dry_run || options.world_size == 0)
      throw Error(ErrorKind::kUsage,
                  "--world-size N and --cluster FILE plan a run: they go with --dry-run, and "
                  "--cluster with --world-size");
    return world.launch().rank == 0 ? print_rank_plan(loaded, options) : 0;
  }
  const std::string run_dir = options.run_dir.empty() ? loaded.config.save_folder : options.run_dir;
  std::optional<std::string> resume;
  if (!options.resume.empty()) resume = options.resume;
  if (loaded.config.try_load_latest_save && !resume) resume = store::kLatestName;
  const train::SessionOptions session{.run_dir = run_dir,
                                      .database = options.database,
                                      .resume = resume,
                                      .command_line = options.command_line};
  const bool writes = world.launch().rank == 0;
  if (options.dry_run || loaded.config.dry_run) {
    if (writes) print_plan(train::plan_session(loaded, session), options.json);
    return 0;
  }
  const auto result =
      train::run_session(loaded, session,
                         {.communicator = world.ranks(),
                          .launch = world.launch().how,
                          .at_step = [&world](std::int64_t step) { world.at_step(step); },
                          .local = world.local()},
                         signals);
  if (writes) print_result(result, loaded.config, options);
  return exit_code_of(result.train.outcome);
}

/// --dry-run, which meets no other rank.
int plan(const TrainOptions& options) {
  const auto ranks = options.ranks.nproc;
  if (options.world_size == 0 && ranks > 1)
    log_line("note: this is the plan of one process; --world-size " + std::to_string(ranks) +
             " shows that of a rank of " + std::to_string(ranks));
  if (ranks == 0) note_several_processes("train --dry-run");
  dist::World alone;
  return run(options, alone);
}

}  // namespace

int train(const TrainOptions& options) {
  if (options.dry_run) return plan(options);
  return on_ranks(options.ranks, [&options](dist::World& world) { return run(options, world); });
}

}  // namespace olmo::cli::compute
