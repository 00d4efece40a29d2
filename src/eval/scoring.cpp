#include "eval/scoring.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace olmo::eval {
namespace {

constexpr double kLog2OfE = 1.44269504089;  // as OLMo's downstream.py has it

double per_char(const OptionRow& row) { return row.logprob / static_cast<double>(row.cont_chars); }
double per_byte(const OptionRow& row) { return row.logprob / static_cast<double>(row.cont_bytes); }

using Value = std::optional<double>;

constexpr std::string_view kF1 = "f1";

constexpr std::array<ScoreDefinition, 10> kScores = {{
    {"sum", false, [](const OptionRow& row) -> Value { return row.logprob; }},
    {"per_char", false, [](const OptionRow& row) -> Value { return per_char(row); }},
    {"per_char_spaced", false,
     [](const OptionRow& row) -> Value {
       return row.logprob / static_cast<double>(row.cont_chars + 1);
     }},
    {"per_byte", false, [](const OptionRow& row) -> Value { return per_byte(row); }},
    {"per_token", false,
     [](const OptionRow& row) -> Value {
       return row.logprob / static_cast<double>(row.cont_tokens);
     }},
    {"pmi", false,
     [](const OptionRow& row) -> Value {
       if (!row.unconditional_logprob) return {};
       return row.logprob - *row.unconditional_logprob;
     }},
    {"pmi_olmo", false,
     [](const OptionRow& row) -> Value {
       if (!row.unconditional_logit_sum) return {};
       return row.logprob / *row.unconditional_logit_sum;
     }},
    {"ce_loss", true, [](const OptionRow& row) -> Value { return -per_char(row); }},
    {"bpb", true, [](const OptionRow& row) -> Value { return -per_byte(row) * kLog2OfE; }},
    {kF1, false, [](const OptionRow&) -> Value { return {}; }},
}};

// The rows of one instance, by cont_id.
using Instance = std::span<const OptionRow* const>;

std::vector<const OptionRow*> sorted_rows(std::span<const OptionRow> rows) {
  std::vector<const OptionRow*> sorted;
  for (const auto& row : rows) sorted.push_back(&row);
  std::ranges::stable_sort(sorted, [](const OptionRow* a, const OptionRow* b) {
    return std::pair(a->doc_id, a->cont_id) < std::pair(b->doc_id, b->cont_id);
  });
  return sorted;
}

std::vector<Instance> split_instances(Instance rows) {
  std::vector<Instance> instances;
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin;
    while (end < rows.size() && rows[end]->doc_id == rows[begin]->doc_id) ++end;
    instances.push_back(rows.subspan(begin, end - begin));
    begin = end;
  }
  return instances;
}

bool is_complete(Instance instance) {
  for (std::size_t i = 0; i < instance.size(); ++i)
    if (instance[i]->cont_id != static_cast<std::int64_t>(i)) return false;
  const std::int64_t label = instance.front()->label;
  return label >= 0 && label < std::ssize(instance);
}

// The option with the highest score, the first of equal ones.
std::optional<std::size_t> chosen_option(const ScoreDefinition& score, Instance instance) {
  std::size_t best = 0;
  double best_value = 0;
  for (std::size_t i = 0; i < instance.size(); ++i) {
    const Value value = score.of(*instance[i]);
    if (!value) return {};
    if (i == 0 || *value > best_value) {
      best = i;
      best_value = *value;
    }
  }
  return best;
}

std::size_t label_of(Instance instance) {
  return static_cast<std::size_t>(instance.front()->label);
}

// What the instance adds to the metric: whether the right option is chosen, or its cost.
Value instance_value(const ScoreDefinition& score, Instance instance) {
  const std::size_t label = label_of(instance);
  if (score.is_cost) return score.of(*instance[label]);
  const auto chosen = chosen_option(score, instance);
  if (!chosen) return {};
  return *chosen == label ? 1.0 : 0.0;
}

// The harmonic mean of precision and recall is twice the hits among all that is chosen or right.
EvaluationMetric f1_metric(const Task& task, const std::string& name,
                           std::span<const Instance> instances) {
  const ScoreDefinition& sum = find_score("sum");
  std::size_t hits = 0, chosen = 0, right = 0;
  for (const Instance instance : instances) {
    const bool is_chosen = chosen_option(sum, instance) == std::size_t{0};
    const bool is_right = label_of(instance) == 0;
    hits += is_chosen && is_right ? 1 : 0;
    chosen += is_chosen ? 1 : 0;
    right += is_right ? 1 : 0;
  }
  EvaluationMetric metric;
  metric.task = task.name;
  metric.metric = name;
  metric.n = std::ssize(instances);
  if (chosen + right > 0)
    metric.value = 2 * static_cast<double>(hits) / static_cast<double>(chosen + right);
  return metric;
}

EvaluationMetric mean_metric(const Task& task, const std::string& name,
                             const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  EvaluationMetric metric;
  metric.task = task.name;
  metric.metric = name;
  metric.value = sum / n;
  metric.n = std::ssize(values);
  if (values.size() > 1) {
    double squares = 0;
    for (const double value : values) squares += (value - metric.value) * (value - metric.value);
    metric.standard_error = std::sqrt(squares / (n - 1)) / std::sqrt(n);
  }
  return metric;
}

EvaluationMetric count_metric(const Task& task, const std::string& name, std::size_t count,
                              std::size_t of) {
  EvaluationMetric metric;
  metric.task = task.name;
  metric.metric = name;
  metric.value = static_cast<double>(count);
  metric.n = static_cast<std::int64_t>(of);
  return metric;
}

const MetricDefinition& primary_metric(const Task& task) {
  for (const auto& metric : task.metrics)
    if (metric.name == task.primary_metric) return metric;
  throw Error(ErrorKind::kInput, task.name + ": primary_metric '" + task.primary_metric +
                                     "' is none of the task's metrics");
}

}  // namespace

void check_metrics(const Task& task) {
  for (const auto& metric : task.metrics) find_score(metric.score);
  primary_metric(task);
}

const ScoreDefinition& find_score(std::string_view name) {
  std::string known;
  for (const auto& score : kScores) {
    if (score.name == name) return score;
    known.append(known.empty() ? "" : ", ").append(score.name);
  }
  throw Error(ErrorKind::kInput,
              "score must be one of " + known + ", got '" + std::string(name) + "'");
}

void rank_options(const Task& task, std::span<OptionRow> rows) {
  const ScoreDefinition* score = &find_score(primary_metric(task).score);
  const auto lacks = [&](const OptionRow& row) { return !score->of(row); };
  if (std::ranges::any_of(rows, lacks)) score = &find_score("sum");
  std::vector<double> values;
  for (const auto& row : rows)
    values.push_back(score->is_cost ? -*score->of(row) : *score->of(row));
  rank_by(values, rows);
}

std::vector<EvaluationMetric> aggregate(const Task& task, std::span<const OptionRow> rows) {
  const auto sorted = sorted_rows(rows);
  std::vector<Instance> instances = split_instances(sorted);
  const std::size_t total = instances.size();
  std::erase_if(instances, [](Instance instance) { return !is_complete(instance); });

  std::vector<EvaluationMetric> metrics;
  std::vector<double> values;
  bool ranks = false;
  for (const auto& definition : task.metrics) {
    const ScoreDefinition& score = find_score(definition.score);
    if (score.name == kF1) {
      if (!instances.empty()) metrics.push_back(f1_metric(task, definition.name, instances));
      continue;
    }
    ranks = ranks || !score.is_cost;
    values.clear();
    for (const Instance instance : instances)
      if (const Value value = instance_value(score, instance)) values.push_back(*value);
    if (!values.empty()) metrics.push_back(mean_metric(task, definition.name, values));
  }
  if (ranks && !instances.empty()) {
    values.clear();
    for (const Instance instance : instances)
      values.push_back(1.0 / static_cast<double>(instance.size()));
    EvaluationMetric chance = mean_metric(task, "chance", values);
    chance.standard_error.reset();
    metrics.push_back(std::move(chance));
  }
  const auto truncated =
      static_cast<std::size_t>(std::ranges::count_if(instances, [](Instance instance) {
        return std::any_of(instance.begin(), instance.end(),
                           [](const OptionRow* row) { return row->truncated_tokens > 0; });
      }));
  if (total > instances.size())
    metrics.push_back(count_metric(task, "skipped", total - instances.size(), total));
  if (truncated > 0)
    metrics.push_back(count_metric(task, "truncated", truncated, instances.size()));
  return metrics;
}

EvaluationMetric macro_average(const std::string& name,
                               std::span<const EvaluationMetric> primaries) {
  OLMO_CHECK(!primaries.empty());
  EvaluationMetric macro;
  macro.task = name;
  macro.scope = "macro";
  macro.metric = primaries.front().metric;
  const auto count = static_cast<double>(primaries.size());
  double variance = 0;
  bool has_error = true;
  for (const auto& metric : primaries) {
    if (metric.metric != macro.metric) macro.metric = "primary";
    macro.value += metric.value / count;
    macro.n += metric.n;
    has_error = has_error && metric.standard_error.has_value();
    const double error = metric.standard_error.value_or(0);
    variance += error * error;
  }
  if (has_error) macro.standard_error = std::sqrt(variance) / count;
  return macro;
}

}  // namespace olmo::eval
