// Steps that a run trained more than once, as it went back to a checkpoint after it had ended
// without one: portable numerics give the same bits each time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/database/record_database.h"

namespace olmo::store {

/// Where a run disagrees with itself.
struct Disagreement {
  std::int64_t step = 0;                  ///< the first that has other bits
  std::int64_t before = 0, after = 0;     ///< the attempts that trained it
  std::string column;                     ///< of steps, that differs
  std::int64_t steps = 0, different = 0;  ///< that these two attempts trained, and so many differ
};

/// Nothing: no step was trained twice under portable numerics, or all have the same bits.
std::optional<Disagreement> disagreement_of(const RecordDatabase& records,
                                            const std::string& run_id);

/// What follows the name of the run.
std::string sentence_of(const Disagreement& found);

}  // namespace olmo::store
