// Whether two records are of one experiment, and of what kind their comparison is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/claims/verdict.h"
#include "report/record/side.h"

namespace olmo::report {

/// Equal start and data, and yet losses of step 1 further apart than this (relative): a bug of the
/// configuration and not of the hardware. In fp32 at most 1.1e-6 was measured between vendors,
/// after a change of the code at least 9.5e-5.
inline constexpr double kFirstLossTolerance = 2e-5;
/// In bf16, and where the precision is not known. The reference differs from itself by 2e-4 with
/// other orders of addition; 22 pairs of logs that were made together on two vendors' GPUs differ
/// by 1.5e-3 at any step at most.
inline constexpr double kFirstLossToleranceBf16 = 2e-3;

/// So far off (relative) the mean of losses or log-likelihoods may be in fp32, in which they are
/// computed whatever the precision: two implementations of one model, which add in other orders,
/// agree to this. A smaller difference tells of no other model.
inline constexpr double kRoundingOfMeans = 2e-6;

/// The first losses, where both sides began alike: at step 1, or after states of equal hashes.
struct FirstLoss {
  std::optional<std::int64_t> step;  ///< nothing: neither side tells steps
  double a = 0, b = 0;
  double relative = 0;   ///< |B - A| / max(|A|, |B|): A and B may change places
  double tolerance = 0;  ///< with the rounding of a log's decimals
  double tolerance_fp32 = 0;
  bool precision_known = true;  ///< on both sides
  std::string basis;            ///< of the tolerance: the precision, and a log's decimals
  bool means_known = true;      ///< whether both are means of one kind (loss_means.h)
};

/// What decides the kind, as far as the records tell.
struct Comparability {
  bool same_start = false;  ///< hashes of the initial weights are equal
  bool start_known = false;
  bool same_order = false;  ///< every common step saw the same batch
  bool order_known = false;
  bool same_batch_size = false;  ///< tokens per step; true where a side does not tell them
  bool batch_size_known = false;
  std::optional<std::int64_t> tokens_a, tokens_b;  ///< per step
  std::optional<FirstLoss> first_loss;

  [[nodiscard]] bool first_losses_agree() const {
    return first_loss && first_loss->relative <= first_loss->tolerance;
  }
};
/// Whether every common step saw the same batch, by the hashes; nothing where they do not tell.
std::optional<bool> same_batches(const store::RecordedRun& a, const store::RecordedRun& b);
/// Tokens of a step; absent where the record tells no steps or no tokens.
std::optional<std::int64_t> tokens_per_step(const store::RecordedRun& run);
/// Whether both tell them, and other numbers: then equal steps are not equal training.
bool unlike_batches(const store::RecordedRun& a, const store::RecordedRun& b);
Comparability comparability(const store::RecordedRun& a, const store::RecordedRun& b);

/// What the config says the matrix products are computed in: fp32, amp_bf16, …; empty: nothing.
std::string precision_of(const store::RecordedRun& run);
/// The unit of the last decimal of an imported log's losses: 0.001 for 2.345. 0 for what was not
/// rounded, and where too few losses are there to tell.
double rounding_of(const store::RecordedRun& run);

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
