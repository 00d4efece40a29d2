#include "report/record/measures.h"

#include <cmath>
#include <utility>

#include "core/text/text.h"

namespace olmo::report {
namespace {

using Numbers = std::vector<std::pair<const char*, double>>;

/// So far below 0 a sum of differences of clocks may come by rounding.
constexpr double kRounding = 1e-3;

/// Of a row, whose place ends in a colon; empty: all can have been measured.
std::string first_impossible(const std::string& place, const Numbers& numbers) {
  for (const auto& [column, value] : numbers)
    if (!(value >= -kRounding) || !std::isfinite(value))
      return place + " " + column + " is " + formatted("%g", value) +
             ", which no machine measures: it was altered";
  return "";
}

std::string problem_of(const store::EnergyRecord& row) {
  return first_impossible("energy of " + row.source + " " + row.device + " in attempt " +
                              std::to_string(row.attempt) + ":",
                          {{"joules", row.joules.value_or(0)},
                           {"seconds", row.seconds.value_or(0)},
                           {"samples", static_cast<double>(row.samples)}});
}

std::string problem_of(const store::RankRecord& row) {
  const std::string place =
      "rank " + std::to_string(row.rank) + " of attempt " + std::to_string(row.attempt) + ":";
  if (row.slowest_steps > row.steps)
    return place + " it was the slowest in " + std::to_string(row.slowest_steps) + " of " +
           counted(row.steps, "step") + ": one of them was altered";
  return first_impossible(place, {{"steps", static_cast<double>(row.steps)},
                                  {"data_seconds", row.data_seconds},
                                  {"compute_seconds", row.compute_seconds},
                                  {"gather_seconds", row.gather_seconds},
                                  {"exchange_seconds", row.exchange_seconds},
                                  {"save_seconds", row.save_seconds},
                                  {"wait_seconds", row.wait_seconds},
                                  {"gathered_bytes", static_cast<double>(row.gathered_bytes)},
                                  {"exchanged_bytes", static_cast<double>(row.exchanged_bytes)},
                                  {"slowest_steps", static_cast<double>(row.slowest_steps)}});
}

std::string problem_of(const store::PhaseRecord& row) {
  const std::string place = "phase " + row.phase + " of steps " + std::to_string(row.first_step) +
                            " to " + std::to_string(row.last_step) + ":";
  if (row.first_step < 1 || row.last_step < row.first_step)
    return place + " these are no steps: one of them was altered";
  if (row.least > row.mean + kRounding || row.mean > row.most + kRounding)
    return place + " its mean of " + formatted("%g", row.mean) + " s is not within " +
           formatted("%g", row.least) + " and " + formatted("%g", row.most) +
           ": one of them was altered";
  return first_impossible(place, {{"mean", row.mean}, {"least", row.least}, {"most", row.most}});
}

/// What `audit --record` writes: a difference has its place, and distances are none below 0.
std::string problem_of(const store::AuditRecord& row) {
  const std::string place = "audit " + std::to_string(row.audit) + ":";
  if (row.first_step < 1 || row.last_step < row.first_step)
    return place + " its steps are " + std::to_string(row.first_step) + " to " +
           std::to_string(row.last_step) + ", which are none: one of them was altered";
  if ((row.verdict == "different") != row.difference_step.has_value())
    return place + " its verdict is " + row.verdict + ", and " +
           (row.difference_step ? "a step" : "no step") +
           " that differs is recorded: one of them was altered";
  for (const auto& [column, distance] : {std::pair("ce_loss_distance", row.ce_loss_distance),
                                         std::pair("grad_norm_distance", row.grad_norm_distance)})
    if (distance && *distance < 0)
      return place + " " + column + " is " + formatted("%g", *distance) +
             ", and no distance is negative: it was altered";
  return "";
}

template <class Row>
void add_first(const std::vector<Row>& rows, std::vector<std::string>& found) {
  for (const Row& row : rows) {
    auto problem = problem_of(row);
    if (problem.empty()) continue;
    found.push_back(std::move(problem));
    return;
  }
}

}  // namespace

std::vector<std::string> impossible_measures(const store::RecordedRun& run) {
  std::vector<std::string> found;
  add_first(run.energy, found);
  add_first(run.ranks, found);
  add_first(run.phases, found);
  add_first(run.audits, found);
  return found;
}

}  // namespace olmo::report
