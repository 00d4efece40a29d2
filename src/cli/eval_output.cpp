#include "cli/eval_output.h"

#include <algorithm>
#include <ostream>

#include <nlohmann/json.hpp>

#include "cli/screen/table.h"
#include "core/files/json.h"
#include "core/text/text.h"
#include "eval/scoring.h"

namespace olmo::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

const EvaluationMetric* find(const std::vector<EvaluationMetric>& metrics, const std::string& name,
                             const std::string& scope = "") {
  const auto found = std::ranges::find_if(
      metrics, [&](const auto& metric) { return metric.metric == name && metric.scope == scope; });
  return found == metrics.end() ? nullptr : &*found;
}

const eval::Task* find_task(std::span<const eval::Task> tasks, const std::string& name) {
  const auto found =
      std::ranges::find_if(tasks, [&](const auto& task) { return task.name == name; });
  return found == tasks.end() ? nullptr : &*found;
}

OrderedJson task_json(const evaluation::TaskOutcome& outcome, const eval::Task& task) {
  OrderedJson json;
  if (outcome.error) {
    json["error"] = outcome.error->what();
    return json;
  }
  json["n"] = outcome.metrics.empty() ? 0 : outcome.metrics.front().n;
  json["primary_metric"] = task.primary_metric;
  json["convention"] = task.convention;
  for (const auto& metric : outcome.metrics) {
    json[metric.metric] = metric.value;
    if (metric.standard_error) json[metric.metric + "_stderr"] = *metric.standard_error;
  }
  return json;
}

/// Numbers that are counts.
bool is_count(const std::string& metric) {
  return metric == "tokens" || metric == "bytes" || metric == "documents";
}

void add_metric(OrderedJson& json, const EvaluationMetric& metric) {
  if (is_count(metric.metric)) {
    json[metric.metric] = static_cast<std::int64_t>(metric.value);
  } else {
    json[metric.metric] = metric.value;
  }
  if (metric.standard_error) json[metric.metric + "_stderr"] = *metric.standard_error;
  if (metric.low && metric.high) json[metric.metric + "_ci95"] = {*metric.low, *metric.high};
}

OrderedJson suite_json(const evaluation::TaskOutcome& outcome) {
  OrderedJson json;
  if (outcome.error) {
    json["error"] = outcome.error->what();
    return json;
  }
  OrderedJson scopes = OrderedJson::object();
  for (const auto& metric : outcome.metrics) {
    OrderedJson& target = metric.scope.empty() ? json : scopes[metric.scope];
    if (!target.contains("documents")) target["documents"] = metric.n;
    add_metric(target, metric);
  }
  if (!scopes.empty()) json["scopes"] = scopes;
  return json;
}

std::string fixed(double value, int digits) { return formatted("%.*f", digits, value); }

std::string percent(const EvaluationMetric* metric) {
  return metric == nullptr ? "" : fixed(100 * metric->value, 2);
}

std::string with_error(const EvaluationMetric& metric, bool cost) {
  const double scale = cost ? 1 : 100;
  const int digits = cost ? 4 : 2;
  std::string text = fixed(scale * metric.value, digits);
  if (metric.standard_error) text += " ± " + fixed(scale * *metric.standard_error, digits);
  return text;
}

void print_tasks(std::ostream& out, const evaluation::EvaluationOutcome& outcome,
                 std::span<const eval::Task> tasks) {
  TextTable table({"task", "n", "primary", "score", "acc", "per char", "per byte", "per token",
                   "pmi", "bpb", "chance"});
  const auto by_score = [](const evaluation::TaskOutcome& result, const eval::Task& task,
                           const std::string& score) {
    for (const auto& metric : task.metrics)
      if (metric.score == score) return find(result.metrics, metric.name);
    return static_cast<const EvaluationMetric*>(nullptr);
  };
  std::vector<EvaluationMetric> primaries;
  for (const auto& result : outcome.tasks) {
    const auto* task = find_task(tasks, result.name);
    const auto* primary = task == nullptr ? nullptr : find(result.metrics, task->primary_metric);
    if (primary == nullptr) {
      table.add({result.name, "0", result.error ? "failed" : "", "", "", "", "", "", "", "", ""});
      continue;
    }
    const bool cost = std::ranges::any_of(task->metrics, [&](const auto& m) {
      return m.name == task->primary_metric && eval::find_score(m.score).is_cost;
    });
    if (!cost) primaries.push_back(*primary);
    const auto* bpb = by_score(result, *task, "bpb");
    table.add(
        {result.name, std::to_string(primary->n), task->primary_metric, with_error(*primary, cost),
         percent(by_score(result, *task, "sum")), percent(by_score(result, *task, "per_char")),
         percent(by_score(result, *task, "per_byte")),
         percent(by_score(result, *task, "per_token")), percent(by_score(result, *task, "pmi")),
         bpb == nullptr ? "" : fixed(bpb->value, 4), percent(find(result.metrics, "chance"))});
  }
  if (primaries.size() > 1) {
    const auto mean = eval::macro_average("mean", primaries);
    table.add({"mean", std::to_string(mean.n), "primary", with_error(mean, false), "", "", "", "",
               "", "", ""});
  }
  table.print(out);
}

void print_suites(std::ostream& out, const evaluation::EvaluationOutcome& outcome) {
  TextTable table({"suite", "scope", "documents", "tokens", "bytes", "perplexity", "95 %",
                   "bits per byte", "95 %"});
  const auto interval = [](const EvaluationMetric* metric, int digits) {
    if (metric == nullptr || !metric->low) return std::string();
    return fixed(*metric->low, digits) + " .. " + fixed(*metric->high, digits);
  };
  const auto count = [](const EvaluationMetric* metric) {
    return metric == nullptr ? std::string() : fixed(metric->value, 0);
  };
  for (const auto& result : outcome.suites) {
    if (result.error) table.add({result.name, "failed", "", "", "", "", "", "", ""});
    std::vector<std::string> scopes;
    for (const auto& metric : result.metrics) {
      if (std::ranges::find(scopes, metric.scope) == scopes.end() &&
          metric.scope.find("subdomain=") == std::string::npos)
        scopes.push_back(metric.scope);
    }
    for (const auto& scope : scopes) {
      const auto* ppl = find(result.metrics, "ppl", scope);
      const auto* bpb = find(result.metrics, "bpb", scope);
      if (ppl == nullptr) continue;
      table.add({result.name, scope.empty() ? "all" : scope, std::to_string(ppl->n),
                 count(find(result.metrics, "tokens", scope)),
                 count(find(result.metrics, "bytes", scope)), fixed(ppl->value, 3),
                 interval(ppl, 2), bpb == nullptr ? "" : fixed(bpb->value, 4), interval(bpb, 3)});
    }
  }
  table.print(out);
}

OrderedJson instance_json(const OptionRow& row, const eval::Task& task) {
  OrderedJson json = {{"task", row.task},
                      {"doc_id", row.doc_id},
                      {"cont_id", row.cont_id},
                      {"native_id", row.native_id},
                      {"label", row.label},
                      {"ctx_tokens", row.ctx_tokens},
                      {"cont_tokens", row.cont_tokens},
                      {"cont_chars", row.cont_chars},
                      {"cont_bytes", row.cont_bytes},
                      {"truncated_tokens", row.truncated_tokens},
                      {"request_hash", row.request_hash},
                      {"logprob", row.logprob},
                      {"is_greedy", row.is_greedy},
                      {"rank", row.rank},
                      {"margin", row.margin}};
  if (row.unconditional_logprob) json["unconditional_logprob"] = *row.unconditional_logprob;
  for (const auto& metric : task.metrics) {
    json[metric.name] = or_null(eval::find_score(metric.score).of(row));
  }
  return json;
}

}  // namespace

OrderedJson scores_json(const evaluation::EvaluationOutcome& outcome,
                        std::span<const eval::Task> tasks) {
  OrderedJson json = {{"tasks", OrderedJson::object()}, {"perplexity", OrderedJson::object()}};
  for (const auto& result : outcome.tasks)
    if (const auto* task = find_task(tasks, result.name))
      json["tasks"][result.name] = task_json(result, *task);
  for (const auto& result : outcome.suites) json["perplexity"][result.name] = suite_json(result);
  return json;
}

void print_scores(std::ostream& out, const evaluation::EvaluationOutcome& outcome,
                  std::span<const eval::Task> tasks) {
  if (!outcome.tasks.empty()) print_tasks(out, outcome, tasks);
  if (!outcome.tasks.empty() && !outcome.suites.empty()) out << "\n";
  if (!outcome.suites.empty()) print_suites(out, outcome);
}

void write_instances(OutputFile& file, const store::EvaluationDb& record,
                     const std::string& evaluation_id, std::span<const eval::Task> tasks) {
  for (const auto& task : tasks) {
    for (const auto& row : record.options(evaluation_id, task.name))
      file.append(json_text(instance_json(row, task)) + "\n");
  }
  file.publish();
}

}  // namespace olmo::cli
