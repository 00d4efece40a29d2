#pragma once

#include <string>

#include "config/key_table.h"

namespace olmo::report {

/// What a parity report says. The value is the exit code of `report parity`; users and checks rely
/// on these numbers.
enum class Verdict : int {
  kEquivalent = 0,            ///< shown to differ by less than the margins, with repeats
  kConsistent = 10,           ///< no difference found; equivalence not certified, or confounded
  kInconclusive = 11,         ///< too few data to say either
  kDifferent = 20,            ///< significantly different, and by more than a margin
  kDifferentNegligible = 21,  ///< significantly different, by less than the margins
  kNotComparable = 30,        ///< the gate found a fatal mismatch
  kInvalidData = 40,          ///< damaged, missing, not finite, or not in order
};

/// EQUIVALENT, CONSISTENT, …
const char* to_string(Verdict verdict);

/// What is compared. The three are never mixed.
enum class Kind {
  kCheckpoint,  ///< K1: the same weights evaluated twice
  kTrajectory,  ///< K2: the same start and the same data, trained twice
  kOutcome,     ///< K3: independent trainings
};

/// checkpoint, trajectory, outcome.
const char* to_string(Kind kind);
/// Throws Error(kUsage) for another word.
Kind kind_named(const std::string& name);

using config::MismatchClass;
const char* to_string(MismatchClass mismatch);

}  // namespace olmo::report
