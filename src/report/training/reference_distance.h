// How far a run is from what portable numerics give, as its audits measured it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/runs/recorded_run.h"

namespace olmo::report {

/// A stretch of one side that was trained again.
struct AuditedStretch {
  std::int64_t first_step = 0, last_step = 0;
  std::string machine;  ///< host, processor, instruction set; empty: not recorded
  std::string verdict;  ///< identical, within_envelope or different
  std::optional<std::int64_t> difference_step;
  std::string difference, operation;
  std::optional<double> ce_loss;    ///< largest distance from the portable reference, nats
  std::optional<double> grad_norm;  ///< the same, relative to the reference
};

/// One side and the portable reference.
struct ReferenceDistance {
  std::string numerics;  ///< portable, fast, or both; empty: not recorded
  std::vector<AuditedStretch> audits;
  std::optional<double> ce_loss, grad_norm;  ///< the largest of the audits

  /// Whether all that the run computed has portable numerics.
  [[nodiscard]] bool is_portable() const { return numerics == "portable"; }
};
ReferenceDistance reference_distance(const store::RecordedRun& run);

/// How far apart the sides are at the steps whose distance from the reference both know.
struct AuditedDistance {
  std::int64_t steps = 0;  ///< 0: none in common
  double ce_loss = 0;      ///< largest |B - A|, nats
  double grad_norm = 0;    ///< largest |B - A| / |A|
  bool explained = false;  ///< the losses: no further apart than both from the reference together
};

struct ReferencedRun {
  const store::RecordedRun& run;
  const ReferenceDistance& reference;
};
/// Nothing if a side's distance is not known.
std::optional<AuditedDistance> audited_distance(const ReferencedRun& a, const ReferencedRun& b);

}  // namespace olmo::report
