// What `olmo-harness eval CHECKPOINT` does.
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/compute/compute.h"
#include "cli/compute/rank_options.h"
#include "cli/eval_output.h"
#include "cli/eval_records.h"
#include "cli/given_path.h"
#include "cli/next_steps.h"
#include "core/compute/libtorch.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/memory_error.h"
#include "core/process/activity.h"
#include "core/process/terminal.h"
#include "data/public/fetch.h"
#include "data/public/tokenizers.h"
#include "dist/exchange.h"
#include "dist/gpu_ranks.h"
#include "dist/together.h"
#include "eval/selection.h"
#include "evaluation/session.h"
#include "store/runs/policy_json.h"

namespace olmo::cli::compute {
namespace {

namespace fs = std::filesystem;

eval::PerplexitySuite open_named(const std::string& text, const EvalOptions& options) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw Error(ErrorKind::kUsage, "--perplexity expects NAME=PATH, got `" + text + "`");
  std::optional<eval::DocumentConvention> convention;
  if (!options.document_convention.empty())
    convention = eval::parse_document_convention(options.document_convention);
  return eval::open_perplexity_suite(text.substr(0, equals), text.substr(equals + 1), convention,
                                     options.split);
}

/// What was asked for, before the model is known.
eval::Selection find_asked(const EvalOptions& options, bool tells) {
  std::vector<std::string> names = options.tasks;
  names.insert(names.end(), options.suites.begin(), options.suites.end());
  if (names.empty() && options.perplexity.empty()) names = {kDefaultSuite};
  std::vector<fs::path> suite_files;
  for (const auto& name : names)
    if (name.ends_with(".json")) suite_files.emplace_back(name);
  const fs::path task_data = task_data_folder(options.data);
  // 0.2.0 told users to put suites beside the evaluation data, in the folder that a fetch replaces.
  eval::SelectionOptions where{
      .convention = options.convention,
      .task_data = task_data,
      .data = {task_data, data::evaluation_data_folder(task_data), data::default_data_folder()}};
  if (!options.missing.empty()) where.refuse_missing = options.missing == "refuse";
  auto asked =
      eval::select(eval::load_catalog(if_given(options.definitions), suite_files), names, where);
  if (tells) {
    for (const auto& note : asked.notes()) log_warning(note);
  }
  for (const auto& text : options.perplexity) asked.suites.push_back(open_named(text, options));
  eval::require_distinct(eval::names_of(asked.tasks, asked.suites));
  return asked;
}

std::optional<fs::path> tokenizer_file(const EvalOptions& options,
                                       const models::ModelFiles& files) {
  if (!options.tokenizer.empty()) return data::require_tokenizer("--tokenizer", options.tokenizer);
  return files.tokenizer.file;
}

bool needs_text(const eval::Selection& asked) {
  if (!asked.tasks.empty()) return true;
  return std::ranges::any_of(asked.suites, [](const auto& suite) {
    return std::ranges::any_of(suite.sources, [](const auto& source) {
      return !source.files.empty() &&
             eval::file_kind(source.files.front().path) != eval::FileKind::kTokens;
    });
  });
}

std::optional<data::Tokenizer> load_tokenizer(const std::optional<fs::path>& file,
                                              const eval::Selection& asked,
                                              const models::ModelFiles& files, bool tells) {
  if (!file) {
    if (!needs_text(asked)) return std::nullopt;
    const auto& named = files.tokenizer.identifier;
    throw Error(ErrorKind::kUsage,
                files.path.string() +
                    (named ? ": was trained with tokenizer `" + *named + "`, which is not here; " +
                                 data::missing_tokenizer_hint(*named)
                           : ": does not say which tokenizer it was trained with") +
                    "; give --tokenizer, a tokenizer.json or a name (dolma-v1_5)");
  }
  auto tokenizer = data::Tokenizer::load(*file);
  const auto note = models::check_tokenizer_fits(files, tokenizer, file->string());
  if (note && tells) log_line("note: " + *note);
  return tokenizer;
}

evaluation::EvaluationPlan plan_of(const EvalOptions& options, const eval::Selection& asked,
                                   const models::LoadedModel& loaded,
                                   const data::Tokenizer* tokenizer) {
  const auto& config = loaded.model.config();
  const auto eos = models::end_of_text(loaded.files, tokenizer);
  evaluation::EvaluationPlan plan;
  plan.tasks = asked.tasks;
  plan.suites = asked.suites;
  if (options.limit > 0) plan.limit = options.limit;
  plan.max_length = options.max_length > 0 ? options.max_length : config.max_sequence_length;
  if (options.max_length > 0) plan.olmo_max_length = options.max_length;
  plan.eos_token_id = static_cast<std::uint32_t>(eos);
  plan.prefix_token = static_cast<std::uint32_t>(loaded.files.tokenizer.ids.bos.value_or(eos));
  plan.unconditional = !options.no_unconditional;
  plan.queue = {.forest_rows = options.batch_tokens, .share_prefixes = !options.no_prefix_sharing};
  return plan;
}

/// An evaluation and where it is written.
struct Recorded {
  fs::path database;
  std::optional<OutputFile> instances;          ///< if they were asked for; of rank 0
  std::optional<evaluation::EvaluatedRun> run;  ///< that it belongs to, if one was named
  evaluation::EvaluationSessionResult result;
};

/// The first failure decides the exit code; the scores of the others are out by then.
int exit_code_of(const evaluation::EvaluationOutcome& outcome) {
  for (const auto* results : {&outcome.tasks, &outcome.suites}) {
    for (const auto& result : *results)
      if (result.error) return static_cast<int>(result.error->kind());
  }
  return 0;
}

nlohmann::ordered_json names_of(
    const std::map<std::string, std::vector<eval::MissingSource>>& missing) {
  nlohmann::ordered_json names;
  for (const auto& [suite, sources] : missing)
    for (const auto& source : sources) names[suite].push_back(source.name);
  return names;
}

/// What is printed on stdout.
void print_result(const EvalOptions& options, const Recorded& recorded,
                  const eval::Selection& asked, const models::LoadedModel& loaded) {
  const auto& outcome = recorded.result.outcome;
  if (!options.json) return print_scores(std::cout, outcome, asked.tasks);
  nlohmann::ordered_json json = {{"checkpoint", options.checkpoint},
                                 {"evaluation_id", recorded.result.evaluation_id},
                                 {"database", recorded.database.string()},
                                 {"weights_digest", loaded.weights_digest.hex()},
                                 {"policy", store::policy_json(loaded.model.policy())}};
  if (recorded.run) json.update({{"run_id", recorded.run->run_id}, {"step", recorded.run->step}});
  json.update(scores_json(outcome, asked.tasks));
  if (!asked.missing.empty()) json["missing"] = names_of(asked.missing);
  json["seconds"] = outcome.seconds;
  json["rows"] = outcome.rows;
  std::cout << json_text(json, 2) << "\n";
}

/// Of a database with several evaluations the id names this one; an instance is rendered from the
/// same data and definitions.
std::vector<NextStep> after_evaluation(const EvalOptions& options, const Recorded& recorded) {
  const std::string database = recorded.database.string();
  const auto& [evaluation_id, resumed, outcome] = recorded.result;
  std::vector<NextStep> steps;
  const auto shown = std::ranges::find_if(
      outcome.tasks, [](const auto& task) { return !task.error && !task.metrics.empty(); });
  if (shown != outcome.tasks.end()) {
    steps.push_back(
        {{"eval", "show", resumed ? database + ":" + evaluation_id : database, shown->name, "0"},
         "an instance: prompt, options, scores"});
    for (const auto& [option, value] :
         {std::pair("--data", options.data), std::pair("--definitions", options.definitions)})
      if (!value.empty()) steps.back().words.insert(steps.back().words.end(), {option, value});
  }
  steps.push_back({{"report", "parity",
                    recorded.run ? database + ":" + recorded.run->run_id : database, "OTHER.db"},
                   "compare with another one"});
  return steps;
}

/// What rank 0 says when the evaluation has ended.
void tell(const EvalOptions& options, Recorded& recorded, const std::optional<JoinedRun>& joined,
          const eval::Selection& asked, const models::LoadedModel& loaded) {
  const std::string& id = recorded.result.evaluation_id;
  if (recorded.result.resumed) log_line("went on with evaluation " + id);
  if (joined) note_earlier(*joined, recorded.run->step, id);
  if (recorded.instances) {
    store::RecordDatabase records(recorded.database, store::OpenMode::kReadOnly);
    write_instances(*recorded.instances, store::EvaluationDb(records), id, asked.tasks);
    log_line("wrote " + options.instances);
  }
  print_result(options, recorded, asked, loaded);
  log_line("evaluation " + id + " in " + recorded.database.string());
  if (!options.json) say_next(after_evaluation(options, recorded));
}

/// How this rank computes: on a device of its own.
Policy policy_of(const EvalOptions& options, dist::World& world) {
  Policy policy;
  dist::together(world.ranks(), [&] {
    const PolicyOptions& here = options.policy;
    policy = resolve_policy(here.numerics, here.isa, here.threads, here.device, world.local());
  });
  if (policy.gpu != nullptr) dist::require_own_gpus(world.ranks(), *policy.gpu);
  if (options.precision == to_string(Precision::kAmpBf16))
    policy.mixed_precision = MixedPrecision::kMixed;
  return policy;
}

int run(const EvalOptions& options, dist::World& world) {
  const bool tells = world.launch().rank == 0;
  std::optional<JoinedRun> joined;
  if (!options.run.empty()) joined = find_joined_run(options.run, options.database);
  // What was typed is looked at before anything is read that takes long.
  Recorded recorded;
  dist::decide(world.ranks(), [&] {
    if (!options.instances.empty()) recorded.instances.emplace(options.instances);
  });
  models::ModelFiles files = models::find_model(options.checkpoint);
  const auto tokenizer_of = tokenizer_file(options, files);
  const Policy policy = policy_of(options, world);
  apply_policy(policy);
  Activity activity(tells);
  activity.now("reading the data of tasks and suites");
  const eval::Selection asked = find_asked(options, tells);
  activity.now("reading the tokenizer");
  const auto tokenizer = load_tokenizer(tokenizer_of, asked, files, tells);
  activity.now("reading the weights of " + options.checkpoint);
  models::LoadedModel loaded = models::load_model(std::move(files), policy);
  if (tells) log_line(loaded.description);

  const data::Tokenizer* const text = tokenizer ? &*tokenizer : nullptr;
  const auto plan = plan_of(options, asked, loaded, text);
  recorded.database = joined                     ? joined->database
                      : options.database.empty() ? evaluation::default_database(loaded)
                                                 : fs::path(options.database);
  if (joined) recorded.run = join_run(*joined, loaded.files, options.step);
  activity.now("turning the texts into tokens");
  {
    ProgressLine line;
    recorded.result =
        evaluation::run_evaluation(loaded, text, plan,
                                   {.database = recorded.database,
                                    .command_line = options.command_line,
                                    .run = recorded.run,
                                    .on_progress =
                                        [&](const Progress& progress) {
                                          activity.done();
                                          if (tells) line.show(progress);
                                        },
                                    .ranks = world.ranks().size() > 1 ? &world.ranks() : nullptr});
  }
  activity.done();
  if (tells) tell(options, recorded, joined, asked, loaded);
  const int code = exit_code_of(recorded.result.outcome);
  return std::stoi(dist::broadcast_text(world.ranks(), std::to_string(code), 0));
}

/// The message's end where memory is short. Every rank holds the whole model.
std::string ways_to_need_less(const EvalOptions& options, const dist::World& world) {
  std::string ways = "; less is needed with a smaller --batch-tokens (it is " +
                     std::to_string(options.batch_tokens) + ")";
  if (options.precision != to_string(Precision::kAmpBf16)) ways += ", or with --precision amp_bf16";
  if (world.launch().size > 1 && options.policy.device == to_string(Device::kCpu))
    ways += ", or with fewer ranks on this machine";
  return ways;
}

int run_with_advice(const EvalOptions& options, dist::World& world) {
  try {
    return run(options, world);
  } catch (const MemoryError& error) {
    throw MemoryError(error.what() + ways_to_need_less(options, world));
  } catch (const std::bad_alloc&) {
    throw MemoryError("there is no memory left" + ways_to_need_less(options, world));
  }
}

}  // namespace

int evaluate(const EvalOptions& options) {
  return on_ranks(options.ranks,
                  [&options](dist::World& world) { return run_with_advice(options, world); });
}

}  // namespace olmo::cli::compute
