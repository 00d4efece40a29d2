#include "report/traced_operation.h"

#include <algorithm>
#include <iterator>

#include "store/audit_records.h"

namespace olmo::report {
namespace {

std::vector<std::int64_t> steps_to_compare(const PartingSteps& steps, const TracedRun& a,
                                           const TracedRun& b) {
  const auto in_a = store::traced_steps(a.records, a.run_id);
  const auto in_b = store::traced_steps(b.records, b.run_id);
  std::vector<std::int64_t> both;
  std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(),
                        std::back_inserter(both));
  both.erase(both.begin(), std::lower_bound(both.begin(), both.end(), steps.after_equal_state));
  const auto end = std::lower_bound(both.begin(), both.end(), steps.parted);
  if (end != both.end()) both.erase(end + 1, both.end());
  return both;
}

std::string audit_command(std::int64_t first, std::int64_t last) {
  return "olmo-harness audit RUN --steps " + std::to_string(first) + ".." + std::to_string(last) +
         " --trace --record";
}

}  // namespace

TracedOperation find_operation(const PartingSteps& steps, const TracedRun& a, const TracedRun& b) {
  TracedOperation found;
  found.parted = steps.parted;
  std::int64_t agreed = steps.after_equal - 1;
  for (const std::int64_t step : steps_to_compare(steps, a, b)) {
    found.traced = step;
    const auto difference = first_difference(store::read_trace(a.records, a.run_id, step),
                                             store::read_trace(b.records, b.run_id, step));
    if (difference) {
      found.operation = difference->operation;
      found.reason = difference->reason;
      break;
    }
    agreed = std::max(agreed, step);
  }
  const bool in_time = !found.operation.empty() && *found.traced <= steps.parted;
  if (!in_time && agreed < steps.parted) found.to_run = audit_command(agreed + 1, steps.parted);
  return found;
}

}  // namespace olmo::report
