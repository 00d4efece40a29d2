#pragma once

#include <string>

#include "config/key_table.h"

namespace olmo::report {

/// What a parity report says.
enum class Verdict {
  kIdentical,            ///< every recorded bit that both sides have is equal
  kEquivalent,           ///< certified to differ by less than the margin
  kConsistent,           ///< no difference found; equivalence not certified, or confounded
  kInconclusive,         ///< too few data to say either
  kDifferent,            ///< significantly different, and by more than a margin
  kDifferentNegligible,  ///< significantly different, by less than the margin
  kNotComparable,        ///< the gate found a fatal mismatch
  kInvalidData,          ///< damaged, missing, not finite, or not in order
};

/// IDENTICAL, EQUIVALENT, CONSISTENT, …
const char* to_string(Verdict verdict);
/// The exit code of `report parity`; users and checks rely on these numbers.
int exit_code(Verdict verdict);

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
