// Where two loss curves of one training part, told by the curves alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/stats/curve_difference.h"

namespace olmo::report {

/// Losses of A and B at the same, ascending positions.
struct PairedCurves {
  std::span<const std::int64_t> positions;  ///< steps, or tokens
  std::span<const double> a, b;
};

struct Parting {
  enum class Cause {
    kOtherData,  ///< the noise from batch to batch is the same on both sides before, and not after
    kUnrelated,  ///< it never is: these are no two trainings on the same batches
    kShifted,    ///< it is, so many places later or earlier: the sides number the same steps
                 ///< differently
    kSuddenJump  ///< |B - A| rises at once by more than an order, and stays: other code or data
  };
  Cause cause = Cause::kOtherData;
  std::int64_t position =
      0;  ///< the first that is affected; of kUnrelated, kShifted the first of all
  /// Correlation of the noise; of a jump the relative difference; of kShifted the correlations at
  /// equal positions (0 where there are none), and with those of B that are `shift` later.
  double before = 0, after = 0;
  std::int64_t shift = 0;  ///< of kShifted: B's position less A's, of one and the same batch
};
/// "other data", "unrelated", "shifted", "sudden jump".
const char* to_string(Parting::Cause cause);
/// One sentence: what it is, where, and the evidence. `unit` is what positions count.
std::string sentence_of(const Parting& parting, const std::string& unit);
/// What it says of two trainings on the same data, as the end of "equivalence is not certified,
/// as".
std::string cap_of(const Parting& parting, const std::string& unit);

/// What of the following is found, by position: other data, unrelated data, a sudden jump. The
/// noise of a batch is a loss less the mean of its two neighbours. Same batches give it to both
/// curves alike: over 22 pairs of logs of two vendors its correlation is above 0.99, rounding that
/// has grown for a hundred steps included; from the step on at which the data differ it is about 0.
/// Rounding grows step by step, so that it neither jumps nor takes the correlation away at once.
/// Needs 30 points; fewer give nothing.
std::vector<Parting> find_partings(const PairedCurves& curves);

/// Logs are known to count from 0 or from 1, and to lose the steps before a restart.
inline constexpr std::int64_t kFurthestShift = 100;
/// Whether the noise of the curves, each at its own positions, agrees only where B's are set
/// against A's so many units earlier or later, kFurthestShift at most. `unit` is what two
/// neighbouring steps are apart by: 1, or the tokens of a step. Nothing where it agrees at equal
/// positions.
std::optional<Parting> find_shift(const Curve& a, const Curve& b, std::int64_t unit);

}  // namespace olmo::report
