#pragma once

#include <string>
#include <vector>

#include "report/claims/claim.h"
#include "report/claims/verdict.h"
#include "report/record/recorded_evaluation.h"
#include "report/record/side.h"
#include "store/runs/recorded_run.h"

namespace olmo::report {

struct Identity;

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
  std::vector<UnknownFact> unknown;

  [[nodiscard]] bool has(MismatchClass mismatch) const;
};

/// The unknown fact of two starts.
inline constexpr char kInitialWeights[] = "initial_weights";

Gate compare_settings(const Side& a, const Side& b, Kind kind);
/// Makes settings benign that changed no bit: where two records hold the same steps, and all of
/// their bits are equal, a key that differs cannot have mattered, whatever it does elsewhere.
void excuse_settings(Gate& gate, const store::RecordedRun& a, const store::RecordedRun& b,
                     const Identity& identity);
/// Where both runs began with the same weights, nothing depends on how they would have been drawn.
void excuse_drawing(Gate& gate);
/// Makes a limit and an eps benign that are the same for gradients of one kind of means
/// (comparability/loss_means.h).
void excuse_gradient_scale(Gate& gate, const store::RecordedRun& a, const store::RecordedRun& b);
/// True if two runs could be repeats of each other: no fatal mismatch and no confound.
bool are_repeats(const store::RecordedRun& a, const store::RecordedRun& b);

}  // namespace olmo::report
