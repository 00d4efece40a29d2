#include "evaluation/evaluators.h"

#include <nlohmann/json.hpp>

#include "eval/load_task.h"
#include "eval/scoring.h"
#include "eval/selection.h"
#include "evaluation/session.h"
#include "evaluation/shuffled_subset.h"

namespace olmo::evaluation {
namespace {

namespace fs = std::filesystem;

/// Continuations or instances that it takes; nothing: all.
std::optional<std::int64_t> sample_limit(const config::EvaluatorConfig& evaluator,
                                         const config::TrainConfig& config) {
  const auto batches = evaluator.subset_num_batches.value_or(config.eval_subset_num_batches);
  const auto own = evaluator.device_eval_batch_size.value_or(0);
  const auto batch = own > 0 ? own : config.device_eval_batch_size;
  std::int64_t samples = 0;
  if (batches <= 0 || __builtin_mul_overflow(batches, batch, &samples)) return std::nullopt;
  return samples;
}

/// Instances whose continuations all lie among the first `samples` of the task. Each has one at
/// least.
std::int64_t whole_instances(const eval::Task& task, std::int64_t samples) {
  std::int64_t count = 0;
  for (const auto& example : eval::load_task(task, samples).examples) {
    samples -= std::ssize(example.options);
    if (samples < 0) break;
    ++count;
  }
  return count;
}

/// The files by label, whose metrics are told apart.
std::map<std::string, std::vector<std::string>> data_sets(
    const config::EvaluatorConfig& evaluator) {
  if (!evaluator.data.paths.empty()) return {{evaluator.label, evaluator.data.paths}};
  auto sets = evaluator.data.datasets;
  std::erase_if(sets, [](const auto& set) { return set.second.empty(); });
  return sets;
}

/// What OLMo's trainer logs of a task: F1 where it has one, else the primary metric.
const eval::MetricDefinition& logged_metric(const eval::Task& task) {
  const auto called = [&](const std::string& name) {
    return std::ranges::find(task.metrics, name, &eval::MetricDefinition::name);
  };
  if (const auto f1 = called("f1"); f1 != task.metrics.end()) return *f1;
  const auto primary = called(task.primary_metric);
  OLMO_CHECK(primary != task.metrics.end());
  return *primary;
}

std::string metric_key(const eval::Task& task) {
  const auto& logged = logged_metric(task);
  const bool cost = eval::find_score(logged.score).is_cost;
  return "eval/downstream" + (cost ? "_" + logged.name : std::string()) + "/" + task.name + "_" +
         logged.name;
}

void add_metrics(const EvaluationPlan& plan, const EvaluationOutcome& outcome,
                 std::vector<std::pair<std::string, double>>& metrics) {
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    for (const auto& metric : outcome.tasks[i].metrics) {
      if (metric.metric == logged_metric(plan.tasks[i]).name)
        metrics.emplace_back(metric_key(plan.tasks[i]), metric.value);
    }
  }
  const std::map<std::string, std::string> words = {{"ce_loss", "CrossEntropyLoss"},
                                                    {"ppl", "Perplexity"}};
  for (std::size_t i = 0; i < plan.suites.size(); ++i) {
    for (const auto& metric : outcome.suites[i].metrics) {
      const auto word = words.find(metric.metric);
      if (word == words.end()) continue;
      for (const auto& source : plan.suites[i].sources) {
        if (metric.scope == "source=" + source.name)
          metrics.emplace_back("eval/" + source.name + "/" + word->second, metric.value);
      }
    }
  }
}

}  // namespace

EvaluationMemory memory_of(const config::TrainConfig& config) {
  EvaluationMemory memory;
  for (const auto& evaluator : config::evaluators_of(config)) {
    const std::int64_t length =
        evaluator.type == "downstream" ? eval::kOlmoMaxLength : config.model.max_sequence_length;
    const std::int64_t most = most_rows(length);
    const auto samples = sample_limit(evaluator, config);
    const std::int64_t rows =
        samples ? std::min(most, std::min(*samples, most / length + 1) * length) : most;
    memory.rows = std::max(memory.rows, rows);
  }
  return memory;
}

Evaluators::Evaluators(const config::TrainConfig& config, const std::optional<fs::path>& tokenizer,
                       const fs::path& data_folder)
    : max_length_(config.model.max_sequence_length),
      eos_token_id_(static_cast<std::uint32_t>(config.model.eos_token_id)) {
  const auto evaluators = config::evaluators_of(config);
  if (evaluators.empty()) return;
  if (tokenizer) tokenizer_ = data::Tokenizer::load(*tokenizer);
  const auto catalog = eval::load_catalog();
  for (const auto& evaluator : evaluators) {
    const auto samples = sample_limit(evaluator, config);
    if (evaluator.type == "downstream")
      add_task(evaluator.label, samples, catalog, data_folder);
    else
      add_suite(evaluator, samples, evaluator.data.seed.value_or(config.seed));
  }
  std::vector<std::string> names;
  for (const auto& plan : plans_)
    for (auto& name : eval::names_of(plan.tasks, plan.suites)) names.push_back(std::move(name));
  eval::require_distinct(std::move(names));
}

EvaluationPlan Evaluators::empty_plan() const {
  EvaluationPlan plan;
  plan.max_length = max_length_;
  plan.eos_token_id = plan.prefix_token = eos_token_id_;
  plan.unconditional = false;  // OLMo's in-loop evaluation has no domain prompts
  return plan;
}

void Evaluators::add_task(const std::string& label, std::optional<std::int64_t> samples,
                          const eval::TaskCatalog& catalog, const fs::path& data_folder) {
  try {
    const auto tasks = eval::select(catalog, std::vector{label}, {.task_data = data_folder}).tasks;
    if (tasks.empty())
      throw Error(ErrorKind::kUsage, "evaluators: " + label +
                                         ": is a perplexity suite, which `type: lm` evaluates from "
                                         "`data.datasets`; `type: downstream` takes tasks");
    if (!tokenizer_) throw Error(ErrorKind::kInput, "the tokenizer is not here");
    std::optional<std::int64_t> limit;
    if (samples) limit = whole_instances(tasks.front(), *samples);
    // Tasks with the same limit share a plan, and so a queue.
    auto plan = std::ranges::find_if(plans_, [&](const EvaluationPlan& other) {
      return other.suites.empty() && other.limit == limit;
    });
    if (plan == plans_.end()) {
      plan = plans_.insert(plans_.end(), empty_plan());
      plan->limit = limit;
    }
    plan->tasks.insert(plan->tasks.end(), tasks.begin(), tasks.end());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    notes_.push_back("evaluator " + label + " is left out: " + error.what());
  }
}

void Evaluators::add_suite(const config::EvaluatorConfig& evaluator,
                           std::optional<std::int64_t> samples, std::uint64_t seed) {
  eval::Selection selection;
  selection.add(eval::suite_of_token_files(evaluator.label, data_sets(evaluator),
                                           data::parse_token_dtype(evaluator.data.memmap_dtype)));
  for (const auto& note : selection.notes()) notes_.push_back("evaluator " + note);
  if (selection.suites.empty()) return;
  auto& suite = selection.suites.front();
  const auto instances = instances_of(suite, max_length_);
  EvaluationPlan plan = empty_plan();
  if (samples) plan.only_documents = shuffled_subset(instances, *samples, seed);
  plan.suites.push_back(std::move(suite));
  plans_.push_back(std::move(plan));
}

EvaluationMemory Evaluators::memory() const {
  constexpr std::int64_t kBytesOfTokenizer = 800;  // for each id, as measured with 50,277
  EvaluationMemory most;
  for (const auto& plan : plans_) {
    const EvaluationMemory memory = memory_of(plan);
    most = {std::max(most.rows, memory.rows), std::max(most.texts, memory.texts)};
  }
  if (tokenizer_)
    most.texts += kBytesOfTokenizer * static_cast<std::int64_t>(tokenizer_->vocab_size());
  return most;
}

Json Evaluators::settings() const {
  Json all = to_json(empty_plan());
  for (const auto& plan : plans_) {
    Json of_plan = to_json(plan);
    for (const char* group : {"tasks", "suites"}) {
      for (Json& entry : of_plan[group]) {
        for (const char* part : {"limit", "only_documents"})
          if (!of_plan[part].is_null()) entry[part] = of_plan[part];
        all[group].push_back(std::move(entry));
      }
    }
  }
  return all;
}

std::vector<std::pair<std::string, double>> Evaluators::run(model::Olmo& model,
                                                            const Occasion& occasion) {
  const auto* tokenizer = tokenizer_ ? &*tokenizer_ : nullptr;
  auto record = describe_evaluation(model, occasion.weights, tokenizer, settings());
  record.step = occasion.step;
  std::optional<store::RecordDatabase> own;  // metrics are made from rows, on every rank
  if (occasion.run != nullptr) {
    record.run_id = occasion.run->run_id();
    record.attempt = occasion.run->attempt();
  } else {
    own.emplace(store::kInMemory, store::OpenMode::kCreate);
  }
  store::EvaluationDb db(own ? *own : occasion.run->records());
  db.begin(record);
  const EvaluationRanks among{.ranks = &occasion.ranks, .passes = occasion.passes, .check = [&] {
                                occasion.signals.throw_if_requested("the evaluation is not whole");
                              }};
  std::vector<std::pair<std::string, double>> metrics;
  bool failed = false;
  try {
    for (const auto& plan : plans_) {
      const auto outcome = evaluate(model, tokenizer, plan, &db, {}, among);
      failed = failed || outcome.has_failures();
      add_metrics(plan, outcome, metrics);
    }
  } catch (const Error& error) {
    const bool asked =
        error.kind() == ErrorKind::kStopped || error.kind() == ErrorKind::kInterrupted;
    db.end(asked ? "interrupted" : "failed");
    if (!asked) throw;
    return {};
  }
  db.end(failed ? "failed" : "finished");
  return metrics;
}

}  // namespace olmo::evaluation
