#include "report/plan.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/sorted_quantile.h"
#include "core/text/text.h"
#include "report/stats/paired_outcomes.h"
#include "report/stats/run_groups.h"
#include "report/stats/series_mean.h"

namespace olmo::report {
namespace {

/// Nats: the limits of a margin from repeats, and what one trajectory is compared within.
/// More than anyone trains.
constexpr std::int64_t kMostRuns = 200, kMostBranches = 2000;

std::string three_digits(double value) { return formatted("%.3g", value); }
std::string percent(double share) { return formatted("%.0f %%", 100 * share); }

/// The first count at which `power` is at least kPower; nothing up to `most`. Power grows with the
/// count.
template <class Power>
std::optional<std::int64_t> fewest(std::int64_t least, std::int64_t most, const Power& power) {
  if (power(most) < kPower) return std::nullopt;
  std::int64_t low = least - 1, high = most;
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    (power(middle) >= kPower ? high : low) = middle;
  }
  return high;
}

std::string advice_on(const PlanTable& table, std::optional<std::int64_t> enough) {
  if (!enough)
    return "No number of " + table.counted + " that one would pay for certifies " + table.margin +
           " with a probability of " + percent(kPower) + ": chance is larger than the margin.";
  return std::to_string(*enough) + " " + table.counted + " certify " + table.margin +
         " with a probability of at least " + percent(kPower) + ".";
}

template <class Power>
void fill(PlanTable& table, const std::vector<std::int64_t>& counts, const Power& power) {
  for (const auto count : counts) table.rows.push_back({count, power(count)});
}

PlanTable plan_runs(double deviation, std::optional<double> margin) {
  PlanTable table{.scope = Scope::kSetups,
                  .endpoint = "mean loss of the last stretch",
                  .counted = "runs a side",
                  .margin = margin ? "±" + three_digits(*margin) + " nats"
                                   : "a margin from the repeats, ±" +
                                         three_digits(std::clamp(2 * deviation, kSmallestLossMargin,
                                                                 kLargestLossMargin)) +
                                         " nats"};
  const auto power = [&](std::int64_t k) {
    return margin ? welch_power(deviation, deviation, k, k, *margin)
                  : repeats_power(deviation, k, kSmallestLossMargin, kLargestLossMargin);
  };
  fill(table, {2, 3, 4, 5, 6, 8, 10, 12, 16, 24}, power);
  table.advice = advice_on(table, fewest(2, kMostRuns, power));
  return table;
}

PlanTable plan_branches(double deviation, double margin) {
  PlanTable table{.scope = Scope::kSetups,
                  .endpoint = "mean loss of branches from the same checkpoints",
                  .counted = "pairs of branches",
                  .margin = "±" + three_digits(margin) + " nats"};
  const auto power = [&](std::int64_t k) {
    const auto pairs = static_cast<double>(k);
    return certification_power(deviation / std::sqrt(pairs), pairs - 1, margin);
  };
  fill(table, {2, 3, 5, 10, 20, 40}, power);
  table.advice = advice_on(table, fewest(2, kMostBranches, power));
  return table;
}

PlanTable plan_points(double deviation, double time, double margin) {
  PlanTable table{.scope = Scope::kModels,
                  .endpoint = "loss of the last stretch of one pair",
                  .counted = "logged steps in the last stretch",
                  .margin = "±" + three_digits(margin) + " nats"};
  fill(table, {20, 40, 60, 100, 200, 400, 800, 1600},
       [&](std::int64_t n) { return series_power(deviation, time, n, margin); });
  const auto enough = std::find_if(table.rows.begin(), table.rows.end(),
                                   [](const auto& row) { return row.power >= kPower; });
  table.advice =
      advice_on(table, enough == table.rows.end() ? std::nullopt : std::optional(enough->count));
  return table;
}

/// The margin that a task certifies with kPower.
double certifiable(const PlannedTask& task) {
  double low = 0, high = 1;
  for (int i = 0; i < 20; ++i) {
    const double middle = low + (high - low) / 2;
    (paired_power(task.discordance, task.instances, middle) >= kPower ? high : low) = middle;
  }
  return high;
}

TaskPlan plan_macro(const std::vector<PlannedTask>& tasks, double margin) {
  TaskPlan plan{.name = "macro average", .margin = margin};
  std::vector<double> discordance;
  std::vector<std::int64_t> instances;
  for (const auto& task : tasks) {
    discordance.push_back(task.discordance);
    instances.push_back(task.instances);
    plan.instances += task.instances;
    plan.may_have_more = plan.may_have_more || task.may_have_more;
    plan.discordance += task.discordance / static_cast<double>(tasks.size());
  }
  const auto limits = macro_limits(discordance, instances);
  const auto below = std::lower_bound(limits.begin(), limits.end(), margin) - limits.begin();
  plan.power = static_cast<double>(below) / static_cast<double>(limits.size());
  plan.certifiable = sorted_quantile(limits, kPower);
  return plan;
}

/// A whole set has no more instances: what they certify instead is what is said.
std::string advice_on(const std::vector<TaskPlan>& tasks) {
  const TaskPlan& best = tasks.front();
  const std::string name = tasks.size() > 1 ? "The " + best.name : best.name;
  std::string text = name + " is certified within ±" + three_digits(100 * best.margin) +
                     " pp with a probability of " + percent(best.power);
  if (best.power < kPower)
    text += "; its " + std::to_string(best.instances) + " instances" +
            (best.may_have_more ? "" : ", which are all there are,") + " certify ±" +
            three_digits(100 * best.certifiable) + " pp with " + percent(kPower) + ": " +
            (best.may_have_more ? "score more of them if the set has more, " : "") +
            "declare that margin before the comparison, or average over more tasks";
  const auto weak =
      std::count_if(tasks.begin() + 1, tasks.end(), [](const auto& t) { return t.power < kPower; });
  if (weak > 0)
    text += ". " + std::to_string(weak) + " of " + std::to_string(tasks.size() - 1) +
            " tasks are too small for their margin by themselves: claim the macro average";
  return text + ".";
}

}  // namespace

Plan make_plan(const PlanFacts& facts) {
  Plan plan;
  if (facts.loss_deviation)
    plan.tables.push_back(plan_runs(*facts.loss_deviation, facts.loss_margin));
  if (facts.branch_deviation)
    plan.tables.push_back(
        plan_branches(*facts.branch_deviation, facts.loss_margin.value_or(kSmallestLossMargin)));
  if (facts.step_deviation)
    plan.tables.push_back(plan_points(*facts.step_deviation, facts.correlation_time,
                                      facts.loss_margin.value_or(kSmallestLossMargin)));
  if (facts.tasks.size() > 1) plan.tasks.push_back(plan_macro(facts.tasks, facts.macro_margin));
  for (const auto& task : facts.tasks)
    plan.tasks.push_back({task.name, task.instances, task.discordance, facts.task_margin,
                          paired_power(task.discordance, task.instances, facts.task_margin),
                          certifiable(task), task.may_have_more});
  if (!plan.tasks.empty()) plan.task_advice = advice_on(plan.tasks);
  if (plan.tables.empty() && plan.tasks.empty())
    throw Error(ErrorKind::kUsage, "plan: nothing is known of chance, so nothing can be planned");
  return plan;
}

}  // namespace olmo::report
