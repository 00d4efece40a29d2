#include "report/evaluations/task_flips.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/sorted_quantile.h"

namespace olmo::report {
namespace {

double movement(const InstancePair& instance) { return instance.a->margin + instance.b->margin; }

std::vector<double> copied(std::span<const double> values) {
  return {values.begin(), values.end()};
}

Flip written_out(const FlipPlace& place) {
  const auto& [a, b] = place.instance;
  return {.task = place.task->a->task,
          .doc_id = a->doc_id,
          .label = a->label,
          .chosen_a = a->chosen,
          .chosen_b = b->chosen,
          .margin_a = a->margin,
          .margin_b = b->margin,
          .logprobs_a = copied(logprobs_of(*place.task->a, *a)),
          .logprobs_b = copied(logprobs_of(*place.task->b, *b)),
          .explained = place.explained};
}

}  // namespace

double flip_noise(const TaskPair& task) {
  std::vector<double> changes;
  for (const auto& [a, b] : task.instances)
    if (a->chosen == b->chosen) changes.push_back(std::abs(b->margin - a->margin));
  if (changes.empty()) return 0;
  std::sort(changes.begin(), changes.end());
  return sorted_quantile(changes, kNoiseShare);
}

bool explains(double noise, const InstancePair& instance) {
  return noise > 0 && movement(instance) <= 2 * noise;
}

std::vector<Flip> list_flips(std::vector<FlipPlace> places) {
  const auto listed =
      places.begin() + static_cast<std::ptrdiff_t>(std::min(places.size(), kListedFlips));
  const auto key = [](const FlipPlace& place) {
    return std::tuple<bool, double, const std::string&, std::int64_t>(
        place.explained, -movement(place.instance), place.task->a->task, place.instance.a->doc_id);
  };
  std::partial_sort(places.begin(), listed, places.end(),
                    [&](const auto& x, const auto& y) { return key(x) < key(y); });
  std::vector<Flip> flips;
  for (auto place = places.begin(); place != listed; ++place) flips.push_back(written_out(*place));
  return flips;
}

std::span<const double> logprobs_of(const EvaluatedTask& task, const EvaluatedInstance& instance) {
  return std::span(task.logprobs)
      .subspan(static_cast<std::size_t>(instance.first_option),
               static_cast<std::size_t>(instance.options));
}

}  // namespace olmo::report
