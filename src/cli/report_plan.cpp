// `olmo-harness report plan`: what a claim takes, before anyone trains.
#include <algorithm>
#include <cmath>
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/screen/table.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/process/terminal.h"
#include "core/text/number.h"
#include "core/text/text.h"
#include "report/evaluations/evaluation_match.h"
#include "report/evaluations/gathered_tasks.h"
#include "report/evaluations/named_evaluations.h"
#include "report/gate.h"
#include "report/plan.h"
#include "report/record/contradictions.h"
#include "report/record/side.h"
#include "report/stats/run_groups.h"
#include "report/training/assignment.h"
#include "report/training/repeats.h"
#include "store/evaluations/evaluation_db.h"

namespace olmo::cli {
namespace {

using report::PlanFacts;

/// Of instances, where no repeats tell: between models of equal quality a few percent are usual.
constexpr double kUsualDiscordance = 0.05;
constexpr double kPercent = 100;

struct ReportPlanArguments {
  std::string run, margin, instances, discordance;
  std::string loss_deviation, branch_deviation, step_deviation, correlation_time;
  bool json = false;
};

double number_of(const std::string& text, const std::string& option) {
  const auto value = parse_number<double>(text);
  if (!value || !(*value >= 0) || !std::isfinite(*value))
    throw Error(ErrorKind::kUsage, "report plan: " + option + " must be a number of at least 0, " +
                                       "received `" + text + "`");
  return *value;
}

std::optional<double> given(const std::string& text, const std::string& option) {
  return text.empty() ? std::nullopt : std::optional(number_of(text, option));
}

/// `NAME=N,NAME=N` or `N`.
std::vector<report::PlannedTask> tasks_of(const std::string& text) {
  std::vector<report::PlannedTask> tasks;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const auto equals = part.find('=');
    const std::string name = equals == std::string::npos ? "task" : part.substr(0, equals);
    const double count =
        number_of(equals == std::string::npos ? part : part.substr(equals + 1), "--instances");
    if (count < 1 || count > 1e9 || count != std::floor(count))
      throw Error(ErrorKind::kUsage,
                  "report plan: --instances must be whole numbers from 1 on, "
                  "received `" +
                      part + "`");
    tasks.push_back({name, static_cast<std::int64_t>(count), kUsualDiscordance});
    at = end + 1;
  }
  return tasks;
}

/// Why nothing is reckoned from a run's figures, as follows "its record"; empty: they are sound.
std::string why_not_believed(const store::RecordedRun& run) {
  if (!run.damage.empty() || !report::contradictions_of(run).empty()) return "is damaged";
  return report::unread_config_of(run);
}

/// Standard deviation of the last tenth's mean loss between a run and its tagged repeats. Warns of
/// one that is left out because its record is not to be believed.
std::optional<double> deviation_of_repeats(const store::RecordedRun& run,
                                           const store::RecordDatabase& records) {
  if (run.steps.size() == 0) return std::nullopt;
  const std::int64_t last = run.steps.tokens.back();
  const report::Stretch stretch{.from = last - last / 10, .to = last, .tokens = {}};
  std::vector<double> means = {report::mean_loss(run, stretch)};
  std::vector<store::RecordedRun> repeats;  // each training counts once
  std::string before;
  for (const auto& tag : store::read_tags(records)) {
    if (tag.run_id == run.run_id || tag.run_id == before) continue;
    before = tag.run_id;
    auto repeat = report::read_whole_run(records, tag.run_id);
    const bool as_long = repeat.steps.size() > 0 && repeat.steps.tokens.back() >= last;
    const auto is_copy_of = [&](const auto& one) { return report::is_same_run(one, repeat); };
    if (!as_long || !report::is_tagged_repeat(repeat) || !report::are_repeats(run, repeat) ||
        is_copy_of(run) || std::ranges::any_of(repeats, is_copy_of))
      continue;
    if (const auto why = why_not_believed(repeat); !why.empty()) {
      log_warning("the repeat " + repeat.run_id + " is left out: its record " + why);
      continue;
    }
    means.push_back(report::mean_loss(repeat, stretch));
    repeats.push_back(std::move(repeat));
  }
  if (means.size() < 2) return std::nullopt;
  return report::sample_standard_deviation(means);
}

/// Of two models' answers to a task, the share of instances that one alone answers right.
double discordance_of(const report::EvaluatedTask& a, const report::EvaluatedTask& b) {
  report::Findings none;
  const auto pair = report::match_task(a, b, none);
  const auto discordant = std::ranges::count_if(pair.instances, [](const auto& instances) {
    return instances.a->right() != instances.b->right();
  });
  return static_cast<double>(discordant) / static_cast<double>(pair.instances.size());
}

/// The tasks of a run's latest evaluated step. Their discordance is the mean over the other models
/// of that step which the database has, and which were asked the same.
std::vector<report::PlannedTask> recorded_tasks(const report::SideRecords& records) {
  std::vector<report::PlannedTask> tasks;
  if (records.evaluations.empty()) return tasks;
  const auto& latest = report::latest_of(records.evaluations);
  const auto own_models = report::by_model(latest.record.step, records.evaluations);
  const auto own = report::gathered_tasks(records, own_models.front(), [](const auto& task) {
    return !task.is_cost() && !task.instances.empty();
  });
  const auto entries = store::EvaluationDb(records.database()).list();
  std::vector<report::EvaluationData> others;
  for (const auto& model : report::by_model(latest.record.step, entries))
    if (model.front()->record.weights_digest != latest.record.weights_digest)
      others.push_back(report::gathered_tasks(records, model, [](const auto&) { return true; }));
  for (const auto& task : own.tasks) {
    double sum = 0, count = 0;
    for (const auto& other : others) {
      const auto* found = report::find_task(other, task.task);
      if (found == nullptr || !report::asked_the_same(task, *found)) continue;
      sum += discordance_of(task, *found);
      ++count;
    }
    tasks.push_back({.name = task.task,
                     .instances = std::ssize(task.instances),
                     .discordance = count > 0 ? sum / count : kUsualDiscordance,
                     .may_have_more = task.asked.limit == std::ssize(task.instances)});
  }
  return tasks;
}

PlanFacts facts_of(const ReportPlanArguments& options) {
  PlanFacts facts;
  if (!options.run.empty()) {
    const auto records = report::open_records(store::parse_run_name(options.run));
    report::Side side;
    report::add_run(side, records);
    for (const auto& sentence : report::damage_of(side)) log_warning(options.run + ": " + sentence);
    if (!side.unchecked.empty()) log_warning(options.run + ": the record " + side.unchecked);
    if (side.run) facts.loss_deviation = deviation_of_repeats(*side.run, records.database());
    facts.tasks = recorded_tasks(records);
  }
  const auto take = [](std::optional<double>& fact, const std::string& text, const char* option) {
    if (const auto value = given(text, option)) fact = value;
  };
  take(facts.loss_deviation, options.loss_deviation, "--loss-deviation");
  take(facts.branch_deviation, options.branch_deviation, "--branch-deviation");
  take(facts.step_deviation, options.step_deviation, "--step-deviation");
  facts.correlation_time = given(options.correlation_time, "--correlation-time").value_or(1);
  if (!options.instances.empty()) facts.tasks = tasks_of(options.instances);
  if (const auto percent = given(options.discordance, "--discordance"))
    for (auto& task : facts.tasks) task.discordance = *percent / kPercent;
  const auto margins = report::parse_margins(options.margin);
  const auto margin = [&](const char* name, double usual) {
    const auto found = margins.find(name);
    return (found == margins.end() ? usual : found->second) / kPercent;
  };
  if (margins.contains("loss")) facts.loss_margin = margins.at("loss");
  facts.macro_margin = margin("macro", kPercent * facts.macro_margin);
  facts.task_margin = margin("task", kPercent * facts.task_margin);
  return facts;
}

std::string percent(double share, int decimals = 0) {
  return formatted("%.*f", decimals, kPercent * share);
}

nlohmann::ordered_json json_of(const report::Plan& plan) {
  nlohmann::ordered_json json = {{"tables", nlohmann::ordered_json::array()},
                                 {"tasks", nlohmann::ordered_json::array()},
                                 {"task_advice", plan.task_advice}};
  for (const auto& table : plan.tables) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const auto& row : table.rows) rows.push_back({{"count", row.count}, {"power", row.power}});
    json["tables"].push_back({{"claim", to_string(table.scope)},
                              {"endpoint", table.endpoint},
                              {"counted", table.counted},
                              {"margin", table.margin},
                              {"rows", rows},
                              {"advice", table.advice}});
  }
  for (const auto& task : plan.tasks)
    json["tasks"].push_back({{"task", task.name},
                             {"instances", task.instances},
                             {"discordance", task.discordance},
                             {"margin", task.margin},
                             {"power", task.power},
                             {"certifiable", task.certifiable}});
  return json;
}

void print(const report::Plan& plan) {
  for (const auto& table : plan.tables) {
    std::cout << "Claim about the " << to_string(table.scope) << ": " << table.endpoint
              << ", within " << table.margin << "\n";
    TextTable rows({table.counted, "certified if equal, %"});
    for (const auto& row : table.rows) rows.add({std::to_string(row.count), percent(row.power)});
    rows.print(std::cout, 2);
    std::cout << table.advice << "\n\n";
  }
  if (plan.tasks.empty()) return;
  std::cout << "Claim about the models: scores on the same instances\n";
  TextTable rows({"task", "instances", "discordant, %", "margin, pp", "certified if equal, %",
                  "certified in 80 %, pp"});
  for (const auto& task : plan.tasks)
    rows.add({task.name, std::to_string(task.instances), percent(task.discordance, 2),
              percent(task.margin, 2), percent(task.power), percent(task.certifiable, 2)});
  rows.print(std::cout, 2);
  std::cout << plan.task_advice << "\n";
}

}  // namespace

void add_report_plan(const Command& report) {
  const Command plan = report.add(
      "plan", "How many runs, branches, steps and instances a claim takes, with its power");
  auto& options = plan.options<ReportPlanArguments>();
  plan.run(options.run, "RUN", "Its tasks, and its tagged repeats, say what chance is");
  plan.option("--loss-deviation NATS", options.loss_deviation,
              "Standard deviation of the final loss between runs of one setup");
  plan.option("--branch-deviation NATS", options.branch_deviation,
              "Standard deviation of the loss difference of two branches from one checkpoint");
  plan.option("--step-deviation NATS", options.step_deviation,
              "Standard deviation of one step's loss difference of two runs");
  plan.option("--correlation-time STEPS", options.correlation_time,
              "Steps that tell as much as one independent step; 1 if not given");
  plan.option(
      "--margin KEY=VALUE,…", options.margin,
      "loss=NATS, macro=POINTS, task=POINTS; without loss: from the repeats, as parity does");
  plan.option("--instances NAME=N,…", options.instances, "Sizes of the tasks' sets");
  plan.option("--discordance PERCENT", options.discordance,
              "Instances that exactly one of two equal models gets right; 5 if nothing tells");
  plan.json(options.json);
  plan.footer(
      "Example: olmo-harness report plan --loss-deviation 0.003 --instances "
      "arc_easy=570,boolq=3270");
  plan.action([&options] {
    const auto made = report::make_plan(facts_of(options));
    if (options.json)
      std::cout << json_text(json_of(made), 2) << "\n";
    else
      print(made);
  });
}

}  // namespace olmo::cli
