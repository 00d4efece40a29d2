// Where two loss curves of one training part, told by the curves alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

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
    kShifted,    ///< it is, one place later or earlier: the sides number the same steps differently
    kSuddenJump  ///< |B - A| rises at once by more than an order, and stays: other code or data
  };
  Cause cause = Cause::kOtherData;
  std::int64_t position =
      0;  ///< the first that is affected; of kUnrelated, kShifted the first of all
  /// Correlation of the noise; of a jump the relative difference; of kShifted the correlations at
  /// equal positions, and with B's next or previous one.
  double before = 0, after = 0;
};
/// "other data", "unrelated", "shifted", "sudden jump".
const char* to_string(Parting::Cause cause);
/// One sentence: what it is, where, and the evidence. `unit` is what positions count.
std::string sentence_of(const Parting& parting, const std::string& unit);
/// What it says of two trainings on the same data, as the end of "equivalence is not certified,
/// as".
std::string cap_of(const Parting& parting, const std::string& unit);

/// What of the following is found, by position. The noise of a batch is a loss less the mean of its
/// two neighbours. Same batches give it to both curves alike: over 22 pairs of logs of two vendors
/// its correlation is above 0.99, rounding that has grown for a hundred steps included; from the
/// step on at which the data differ it is about 0. Rounding grows step by step, so that it neither
/// jumps nor takes the correlation away at once. Needs 30 points; fewer give nothing.
std::vector<Parting> find_partings(const PairedCurves& curves);

}  // namespace olmo::report
