#pragma once

#include <string>
#include <vector>

#include "report/recorded_evaluation.h"
#include "report/recorded_run.h"
#include "report/verdict.h"

namespace olmo::report {

enum class MismatchClass {
  kFatal,     ///< the runs cannot be compared
  kConfound,  ///< declared: the verdict is capped at CONSISTENT
  kBenign,    ///< cannot change the result, or is what is being compared
};
const char* to_string(MismatchClass mismatch);

/// A fingerprint that differs.
struct Mismatch {
  std::string what;  ///< e.g. `optimizer.learning_rate`
  std::string a, b;
  MismatchClass mismatch = MismatchClass::kBenign;
  std::string reason;  ///< one sentence
};

/// What was found equal: shown as one line.
struct Gate {
  std::vector<Mismatch> mismatches;  ///< fatal ones first
  std::vector<std::string> equal;
  std::vector<std::string> unknown;  ///< what the records do not tell

  [[nodiscard]] bool has(MismatchClass mismatch) const;
};

}  // namespace olmo::report
