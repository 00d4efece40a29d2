#include "report/record/record_check.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/text.h"
#include "report/record/contradictions.h"
#include "report/record/side.h"
#include "store/runs/run_facts.h"

namespace olmo::report {

using State = RecordCheck::State;

const char* to_string(RecordCheck::State state) {
  switch (state) {
    case State::kSound:
      return "sound";
    case State::kDamaged:
      return "damaged";
    case State::kUnchecked:
      break;
  }
  return "unchecked";
}

nlohmann::ordered_json reason_json(const RecordCheck& check) {
  return check.reason.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(check.reason);
}

RecordCheck check_record(const store::RecordDatabase& records, const std::string& run_id) {
  try {
    Side side;
    side.run = read_whole_run(records, run_id);
    if (auto damage = damage_of(side); !damage.empty())
      return {State::kDamaged, std::move(damage.front())};
    auto unchecked = unchecked_of(*side.run);
    const State state = unchecked.empty() ? State::kSound : State::kUnchecked;
    return {state, std::move(unchecked)};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDamaged) throw;
    return {State::kDamaged, error.what()};
  }
}

RecordCheck check_short_record(const store::RecordDatabase& records, const std::string& run_id,
                               std::int64_t most_steps) {
  const auto steps = store::count_of(records, "steps", run_id) +
                     store::count_of(records, "imported_steps", run_id);
  if (steps <= most_steps) return check_record(records, run_id);
  return {State::kUnchecked, "was not checked, to be quick (" + counted(steps, "step") +
                                 "); `olmo-harness report run` checks it"};
}

}  // namespace olmo::report
