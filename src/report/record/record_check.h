// Whether a run's record is to be believed, in one word and one sentence: for lists, which show
// columns of many runs.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "store/database/record_database.h"

namespace olmo::report {

struct RecordCheck {
  enum class State { kSound, kDamaged, kUnchecked };

  State state = State::kUnchecked;
  /// Of a damaged one the first thing that is wrong, of an unchecked one why, as follows "the
  /// record"; without a full stop. Empty: sound.
  std::string reason;

  [[nodiscard]] bool is_damaged() const { return state == State::kDamaged; }
  [[nodiscard]] bool is_unchecked() const { return state == State::kUnchecked; }
};

/// "sound", "damaged" or "unchecked".
const char* to_string(RecordCheck::State state);
/// For programs, which get null where there is no reason.
nlohmann::ordered_json reason_json(const RecordCheck& check);

/// As damage_of (record/side.h), evaluations excepted. Reads the whole run: some ten microseconds a
/// step. Throws Error(kUsage) if the database does not hold it.
RecordCheck check_record(const store::RecordDatabase& records, const std::string& run_id);

/// Of so many steps a record is checked within a tenth of a second.
inline constexpr std::int64_t kFewSteps = 10'000;

/// The same for what is to be shown at once: a run of more than `most_steps` is not read, and is
/// unchecked for that reason.
RecordCheck check_short_record(const store::RecordDatabase& records, const std::string& run_id,
                               std::int64_t most_steps = kFewSteps);

}  // namespace olmo::report
