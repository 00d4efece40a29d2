#include "evaluation/evaluation.h"

#include <algorithm>
#include <chrono>

#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/compute/gpu.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "dist/exchange.h"
#include "eval/load_task.h"
#include "eval/perplexity.h"
#include "eval/perplexity_summary.h"
#include "eval/rank_classification.h"
#include "eval/scoring.h"
#include "evaluation/rank_team.h"

namespace olmo::evaluation {
namespace {

using Clock = std::chrono::steady_clock;

/// One run of evaluate(): what its parts share.
struct Evaluation {
  const data::Tokenizer* tokenizer;
  const EvaluationPlan& plan;
  store::EvaluationDb* record;  ///< null: another rank writes
  dist::Communicator* ranks;    ///< null: alone
  const OnProgress& on_progress;
  std::int64_t vocab_size;
  int threads;
  ScoreTokens model;
  EvaluationOutcome outcome;
  Clock::time_point start = Clock::now();

  [[nodiscard]] double seconds() const { return seconds_since(start); }
  void progress(const std::string& task, double fraction) const {
    if (!on_progress) return;
    on_progress({.what = task,
                 .fraction = fraction,
                 .tokens = outcome.rows,
                 .facts = {{formatted("%.1f %%", 100 * fraction), 0}}});
  }
};

void record_failure(Evaluation& evaluation, TaskOutcome& outcome, const Error& error) {
  outcome.error = error;
  if (evaluation.record == nullptr) return;
  evaluation.record->end_task(outcome.name, "failed", error.what());
  if (evaluation.ranks != nullptr && evaluation.ranks->rank() > 0) return;
  log_warning(outcome.name + ": not evaluated: " + error.what());
}

void finish(store::EvaluationDb& record, TaskOutcome& outcome,
            std::vector<EvaluationMetric> metrics) {
  outcome.metrics = std::move(metrics);
  record.record_metrics(outcome.name, outcome.metrics);
  record.end_task(outcome.name, "finished");
}

void begin_task(const Evaluation& evaluation, const store::EvaluationTaskRecord& task) {
  if (evaluation.record != nullptr) evaluation.record->begin_task(task);
}

/// What the record has already of a task or suite; all ranks learn it.
std::set<std::int64_t> done_of(
    const Evaluation& evaluation, const std::string& name,
    std::set<std::int64_t> (store::EvaluationDb::*done)(const std::string&) const) {
  std::set<std::int64_t> numbers;
  if (evaluation.record != nullptr) numbers = (evaluation.record->*done)(name);
  if (evaluation.ranks != nullptr) numbers = numbers_of_first(*evaluation.ranks, numbers);
  return numbers;
}

TaskOutcome& outcome_of(std::vector<TaskOutcome>& outcomes, const std::string& name) {
  return *std::find_if(outcomes.begin(), outcomes.end(),
                       [&](const TaskOutcome& outcome) { return outcome.name == name; });
}

eval::LoadedTask load_task(const Evaluation& evaluation, const eval::Task& task) {
  const EvaluationPlan& plan = evaluation.plan;
  if (plan.queue.team == nullptr) return eval::load_task(task, plan.limit);
  std::optional<eval::LoadedTask> loaded;
  const auto load = [&] {
    loaded = eval::load_task(task, plan.limit);
    return task.data_digest;
  };
  plan.queue.team->read_alike(load, [&] { return "the data of task " + task.name; });
  return std::move(*loaded);
}

/// The tasks that can be evaluated, with their instances.
std::vector<eval::LoadedTask> load_tasks(Evaluation& evaluation, eval::RankOptions& options) {
  std::vector<eval::LoadedTask> loaded;
  for (const auto& task : evaluation.plan.tasks) {
    begin_task(evaluation, {.task = task.name,
                            .kind = "rank_classification",
                            .convention = task.convention,
                            .definition_digest = task.definition_digest.hex(),
                            .data_digest = task.data_digest.hex(),
                            .primary_metric = task.primary_metric});
    auto& outcome = evaluation.outcome.tasks.emplace_back(TaskOutcome{task.name, {}, {}});
    try {
      loaded.push_back(load_task(evaluation, task));
    } catch (const Error& error) {
      record_failure(evaluation, outcome, error);
      continue;
    }
    for (const auto doc_id : done_of(evaluation, task.name, &store::EvaluationDb::done_instances))
      options.done.emplace(task.name, doc_id);
  }
  return loaded;
}

eval::EncodingOptions encoding_of(const EvaluationPlan& plan) {
  return {.max_length = plan.max_length,
          .olmo_max_length = plan.olmo_max_length,
          .prefix_token = plan.prefix_token,
          .unconditional = plan.unconditional};
}

void run_tasks(Evaluation& evaluation) {
  const EvaluationPlan& plan = evaluation.plan;
  if (plan.tasks.empty()) return;
  eval::RankOptions options{.encoding = encoding_of(plan), .queue = plan.queue, .done = {}};
  const auto loaded = load_tasks(evaluation, options);
  auto& outcomes = evaluation.outcome.tasks;
  const std::int64_t rows_before = evaluation.outcome.rows;
  evaluation.progress(plan.tasks.front().name, 0);
  eval::evaluate_tasks(
      loaded, *evaluation.tokenizer, evaluation.model, options,
      {.on_instance =
           [&](auto rows) {
             if (evaluation.record != nullptr) evaluation.record->record_options(rows);
           },
       .on_progress =
           [&](std::int64_t done, std::int64_t total, const std::string& task) {
             evaluation.outcome.rows = rows_before + done;
             evaluation.progress(
                 task, total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1.0);
           },
       .on_task_failed =
           [&](const std::string& task, const Error& error) {
             record_failure(evaluation, outcome_of(outcomes, task), error);
           }});
  if (evaluation.record == nullptr) return;
  store::EvaluationDb& record = *evaluation.record;
  record.flush();
  for (const auto& [task, examples] : loaded) {
    auto& outcome = outcome_of(outcomes, task.name);
    if (outcome.error) continue;
    finish(record, outcome,
           eval::aggregate(task, record.options(record.evaluation_id(), task.name)));
  }
}

/// Texts of which no token is scored have no perplexity: that is no result.
void require_scored(const std::vector<DocumentRow>& rows, const eval::PerplexitySuite& suite,
                    std::int64_t max_length) {
  if (std::ranges::any_of(rows, [](const DocumentRow& row) { return row.tokens > 0; })) return;
  const bool whole = suite.convention == eval::DocumentConvention::kOlmo;
  throw Error(ErrorKind::kInput, whole ? "its texts are shorter than an instance of " +
                                             std::to_string(max_length) +
                                             " tokens, so nothing is scored"
                                       : "its texts are empty, so nothing is scored");
}

void run_suite(Evaluation& evaluation, const eval::PerplexitySuite& suite) {
  const EvaluationPlan& plan = evaluation.plan;
  auto& outcome = evaluation.outcome.suites.emplace_back(TaskOutcome{suite.name, {}, {}});
  begin_task(evaluation, {.task = suite.name,
                          .kind = "perplexity",
                          .convention = to_string(suite.convention),
                          .definition_digest = "",
                          .data_digest = eval::sources_digest(suite.sources).hex(),
                          .primary_metric = "ppl"});
  const auto done = done_of(evaluation, suite.name, &store::EvaluationDb::done_documents);
  const std::int64_t rows_before = evaluation.outcome.rows;
  try {
    evaluation.progress(suite.name, 0);
    eval::evaluate_perplexity(
        suite, evaluation.tokenizer, evaluation.model,
        {.max_length = plan.max_length,
         .eos_token_id = plan.eos_token_id,
         .vocab_size = static_cast<std::uint64_t>(evaluation.vocab_size),
         .limit = plan.limit,
         .threads = evaluation.threads,
         .queue = plan.queue},
        {.on_document =
             [&](const DocumentRow& row) {
               if (evaluation.record != nullptr) evaluation.record->record_documents({&row, 1});
             },
         .on_progress =
             [&](const eval::PerplexityProgress& progress) {
               evaluation.outcome.rows = rows_before + progress.rows;
               evaluation.progress(suite.name, progress.fraction);
             },
         .is_done =
             [&](std::int64_t index) {
               return done.contains(index) ||
                      (plan.only_documents && !plan.only_documents->contains(index));
             }});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput && error.kind() != ErrorKind::kDiverged) throw;
    record_failure(evaluation, outcome, error);
    return;
  }
  if (evaluation.record == nullptr) return;
  store::EvaluationDb& record = *evaluation.record;
  record.flush();
  const auto rows = record.documents(record.evaluation_id(), suite.name);
  try {
    require_scored(rows, suite, plan.max_length);
  } catch (const Error& error) {
    return record_failure(evaluation, outcome, error);
  }
  finish(record, outcome, eval::summarize_perplexity(rows, suite.convention));
}

}  // namespace

bool EvaluationOutcome::has_failures() const {
  const auto failed = [](const TaskOutcome& task) { return task.error.has_value(); };
  return std::ranges::any_of(tasks, failed) || std::ranges::any_of(suites, failed);
}

EvaluationOutcome evaluate(model::Olmo& model, const data::Tokenizer* tokenizer,
                           const EvaluationPlan& plan, store::EvaluationDb* record,
                           const OnProgress& on_progress, const EvaluationRanks& among) {
  EvaluationPlan shared = plan;
  std::optional<eval::ScoringTeam> team;
  if (among.ranks != nullptr) {
    team = team_of(*among.ranks, among.passes, among.check);
    shared.queue.team = &*team;
  }
  Evaluation evaluation{.tokenizer = tokenizer,
                        .plan = shared,
                        .record = record,
                        .ranks = among.ranks,
                        .on_progress = on_progress,
                        .vocab_size = model.config().embedding_rows(),
                        .threads = model.policy().threads,
                        .model =
                            [&](const TokenForest& forest, std::span<TokenScore> scores) {
                              with_device_errors(model.policy(),
                                                 [&] { model.score(forest, scores); });
                            },
                        .outcome = {}};
  run_tasks(evaluation);
  for (const auto& suite : shared.suites) run_suite(evaluation, suite);
  evaluation.outcome.seconds = evaluation.seconds();
  return std::move(evaluation.outcome);
}

Json to_json(const EvaluationPlan& plan) {
  Json tasks = Json::array(), suites = Json::array();
  for (const auto& task : plan.tasks) {
    Json metrics = Json::array();
    for (const auto& metric : task.metrics)
      metrics.push_back({{"name", metric.name}, {"score", metric.score}});
    tasks.push_back({{"name", task.name},
                     {"id", task.id},
                     {"convention", task.convention},
                     {"category", task.category},
                     {"primary_metric", task.primary_metric},
                     {"metrics", metrics},
                     {"max_length", eval::max_length_of(task, encoding_of(plan))},
                     {"definition_digest", task.definition_digest.hex()}});
  }
  for (const auto& suite : plan.suites)
    suites.push_back({{"name", suite.name}, {"convention", to_string(suite.convention)}});
  return {{"tasks", tasks},
          {"suites", suites},
          {"limit", or_null(plan.limit)},
          {"only_documents", or_null(plan.only_documents)},
          {"max_length", plan.max_length},
          {"olmo_max_length", plan.olmo_max_length},
          {"eos_token_id", plan.eos_token_id},
          {"prefix_token", plan.prefix_token},
          {"unconditional", plan.unconditional}};
}

}  // namespace olmo::evaluation
