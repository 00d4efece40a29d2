// What it takes to certify a claim, before anyone trains: how probable EQUIVALENT is between equal
// setups or models, by runs, branches, points and instances.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/claims/claim.h"

namespace olmo::report {

struct PlannedTask {
  std::string name;
  std::int64_t instances = 0;
  double discordance = 0;      ///< share that exactly one of two equal models gets right
  bool may_have_more = false;  ///< a limit was reached: the set may have more instances
};

/// What is known or assumed of chance. What is absent is not planned.
struct PlanFacts {
  std::optional<double> loss_deviation;    ///< between runs of one setup, nats
  std::optional<double> branch_deviation;  ///< of the difference of a pair of branches, nats
  std::optional<double> step_deviation;    ///< of one step's difference of a pair, nats
  double correlation_time = 1;             ///< of those, in steps
  std::optional<double> loss_margin;       ///< nats; absent: from the repeats
  double macro_margin = 0.005, task_margin = 0.01;  ///< fractions
  std::vector<PlannedTask> tasks;
};

/// The power by a count: runs a side, branches, points.
struct PlanTable {
  Scope scope = Scope::kSetups;
  std::string endpoint = {}, counted = {}, margin = {};
  struct Row {
    std::int64_t count = 0;
    double power = 0;
  };
  std::vector<Row> rows = {};
  std::string advice = {};  ///< one sentence: the count that has a power of kPower
};

/// What so many instances can certify about two models.
struct TaskPlan {
  std::string name;  ///< of a task; "macro average"
  std::int64_t instances = 0;
  double discordance = 0;
  double margin = 0;           ///< asked for; a fraction
  double power = 0;            ///< at that margin
  double certifiable = 0;      ///< the margin that is certified with kPower
  bool may_have_more = false;  ///< of one of the tasks, at least
};

struct Plan {
  std::vector<PlanTable> tables;
  std::vector<TaskPlan> tasks;  ///< the macro average first, where there are two or more
  std::string task_advice;      ///< one sentence; empty without tasks
};

/// Throws Error(kUsage) for deviations, shares and margins outside their ranges, and where there is
/// nothing to plan.
Plan make_plan(const PlanFacts& facts);

}  // namespace olmo::report
