#pragma once

#include <vector>

#include "audit/audit.h"

namespace olmo::audit {

/// How a record under `fast` compares with two computations on this machine.
struct EnvelopeResult {
  bool identical = true;                ///< the record has the bits of `fast` on this machine
  std::int64_t steps = 0;               ///< compared
  Distances distances;                  ///< of the record from the portable reference
  std::vector<store::Finding> outside;  ///< what lies further from it than the envelope
};

/// At each step the envelope of a quantity is four times the largest distance up to there between
/// `here` (fast) and `reference` (portable), and at least 1e-6 of the value: differences of
/// rounding grow with the steps, and those of one machine are only a sample of what rounding can
/// do. What does not depend on rounding (batch, tokens, learning rate) must be equal. Both lists
/// start at one step.
EnvelopeResult compare_with_envelope(const AuditedRun& recorded,
                                     const std::vector<store::StepRecord>& reference,
                                     const std::vector<store::StepRecord>& here);

}  // namespace olmo::audit
