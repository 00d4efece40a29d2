#include "eval/rank_classification.h"

#include <cmath>
#include <optional>
#include <vector>

#include "eval/scoring.h"

namespace olmo::eval {
namespace {

// An encoded instance, beside its group in the queue.
struct Instance {
  std::size_t task = 0;
  std::vector<OptionRow> rows;
  std::vector<std::optional<std::size_t>> unconditional;
};

// The instances of all tasks, and the groups that are their sequences.
struct Suite {
  std::vector<Instance> instances;
  std::vector<SequenceGroup> groups;
};

// Throws Error(kInput) if the task's data are bad; the suite is then unchanged.
void append_task(const LoadedTask& loaded, std::size_t index, const data::Tokenizer& tokenizer,
                 const RankOptions& options, Suite& suite) {
  check_metrics(loaded.task);
  std::vector<const Example*> examples;
  for (const auto& example : loaded.examples)
    if (!options.done.contains({loaded.task.name, example.doc_id})) examples.push_back(&example);
  for (auto& encoded : encode_examples(loaded.task, examples, tokenizer, options.encoding)) {
    suite.instances.push_back({index, std::move(encoded.rows), std::move(encoded.unconditional)});
    suite.groups.push_back(std::move(encoded.group));
    suite.groups.back().order = static_cast<std::int64_t>(index);
  }
}

std::optional<Error> not_finite(const OptionRow& row, double value) {
  if (std::isfinite(value)) return {};
  return Error(ErrorKind::kDiverged,
               row.task + ": checkpoint gives " + (std::isnan(value) ? "NaN" : "infinite") +
                   " log-probabilities, first for doc_id " + std::to_string(row.doc_id) +
                   ", continuation " + std::to_string(row.cont_id));
}

// Returns what is wrong with the first score that is not finite.
std::optional<Error> fill_scores(std::span<const SequenceScore> scores, Instance& instance) {
  for (std::size_t i = 0; i < instance.rows.size(); ++i) {
    OptionRow& row = instance.rows[i];
    row.logprob = scores[i].log_prob;
    row.is_greedy = scores[i].is_greedy;
    if (auto error = not_finite(row, row.logprob)) return error;
    if (const auto unconditional = instance.unconditional[i]) {
      const SequenceScore& score = scores[*unconditional];
      row.unconditional_logprob = score.log_prob;
      row.unconditional_logit_sum = score.logit_sum;
      if (auto error = not_finite(row, score.log_prob)) return error;
    }
  }
  return {};
}

}  // namespace

void evaluate_tasks(std::span<const LoadedTask> tasks, const data::Tokenizer& tokenizer,
                    const ScoreTokens& model, const RankOptions& options,
                    const RankCallbacks& callbacks) {
  Suite suite;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    try {
      append_task(tasks[t], t, tokenizer, options, suite);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput) throw;
      callbacks.on_task_failed(tasks[t].task.name, error);
    }
  }

  std::vector<bool> failed(tasks.size());
  std::size_t current = 0;
  QueueCallbacks queue;
  queue.is_wanted = [&](std::size_t group) {
    current = suite.instances[group].task;
    return !failed[current];
  };
  queue.on_group = [&](std::size_t group, std::span<const SequenceScore> scores) {
    Instance& instance = suite.instances[group];
    const Task& task = tasks[instance.task].task;
    if (failed[instance.task]) return;
    if (const auto error = fill_scores(scores, instance)) {
      failed[instance.task] = true;
      callbacks.on_task_failed(task.name, *error);
      return;
    }
    rank_options(task, instance.rows);
    callbacks.on_instance(instance.rows);
  };
  if (callbacks.on_progress) {
    const std::int64_t total = plan_cost(suite.groups, options.queue).rows;
    queue.on_progress = [&callbacks, &tasks, &current, total](std::int64_t done) {
      callbacks.on_progress(done, total, tasks[current].task.name);
    };
  }
  score_groups(suite.groups, model, options.queue, queue);
}

}  // namespace olmo::eval
