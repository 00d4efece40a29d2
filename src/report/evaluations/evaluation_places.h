// At which steps two sides had come equally far, so that what they scored there may be compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "report/record/side.h"

namespace olmo::report {

/// By tokens, as the losses are compared; where a side does not tell those of a step, by steps. Of
/// sides whose batches are of other sizes, equal steps are not equal training.
class EvaluationPlaces {
 public:
  EvaluationPlaces(const Side& a, const Side& b);

  /// Whether the step `in_a` of A and the step `in_b` of B are one place.
  [[nodiscard]] bool same(std::int64_t in_a, std::int64_t in_b) const;
  /// Whether equal steps of the sides are other numbers of tokens.
  [[nodiscard]] bool unlike_steps() const { return unlike_; }
  /// "step 10", with its tokens where steps are unlike. `side`: 'A' or 'B'.
  [[nodiscard]] std::string text(char side, std::int64_t step) const;

 private:
  const store::RecordedRun* a_ = nullptr;  ///< null: no run, or none that tells tokens and steps
  const store::RecordedRun* b_ = nullptr;
  std::int64_t batch_ = 0;  ///< tokens of a step, of the side with the smaller ones
  bool unlike_ = false;
};

/// Seen by a run up to a step; nothing where its record does not tell.
std::optional<std::int64_t> tokens_at(const store::RecordedRun& run, std::int64_t step);

}  // namespace olmo::report
