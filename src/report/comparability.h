// Whether two records are of one experiment, and of what kind their comparison is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/side.h"
#include "report/verdict.h"

namespace olmo::report {

/// Equal start and data, and yet losses of step 1 further apart than this (relative): a bug of the
/// configuration and not of the hardware. Between vendors at most 1.1e-6 was measured, after a
/// change of the code at least 9.5e-5.
inline constexpr double kFirstLossTolerance = 2e-5;

/// What decides the kind, as far as the records tell.
struct Comparability {
  bool same_start = false;  ///< hashes of the initial weights are equal
  bool start_known = false;
  bool same_order = false;  ///< every common step saw the same batch
  bool order_known = false;
  bool same_batch_size = false;  ///< tokens per step; true where a side does not tell them
  bool batch_size_known = false;
  std::optional<double> first_loss;  ///< first_loss_difference
};
Comparability comparability(const store::RecordedRun& a, const store::RecordedRun& b);

/// The indices of each step that both runs have. Where a side tells tokens and no steps, the tokens
/// are what they have in common.
std::vector<std::pair<std::size_t, std::size_t>> common_steps(const store::StepColumns& a,
                                                              const store::StepColumns& b);
/// Why the curves have no axis in common: one side tells tokens and the other does not.
std::optional<std::string> axes_differ(const store::RecordedRun& a, const store::RecordedRun& b);
/// |B - A| / |A| at the first common step; nothing if there is none, or a loss is not finite.
std::optional<double> first_loss_difference(const store::StepColumns& a,
                                            const store::StepColumns& b);

/// The kind of comparison and how it is known. Throws Error(kUsage) where the records do not tell
/// and `given` is absent.
Kind find_kind(const Side& a, const Side& b, std::optional<Kind> given, std::string& reason);

}  // namespace olmo::report
