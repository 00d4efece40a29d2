// How fast this machine computes: the peak that MFU is measured against, and a step of a config.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "config/train_config.h"
#include "core/compute/policy.h"

namespace olmo::train {

/// What the processor can do, in floating-point operations per second, as MFU is measured against:
/// fused multiply-adds on registers, on the policy's threads and with its instruction set, under
/// `fast` the widest. The best of what was seen: other programs make a measurement too low, never
/// too high, so it is repeated while training. A GPU's peak is not measured (the reports take it
/// from a cluster file, configs/clusters/).
class PeakFlops {
 public:
  /// Measures until the best no longer rises, for some 30 to 200 ms. Apply the policy first.
  /// `ranks`: of this machine. If they have more threads than it has processors, the peak is
  /// unknown: in its best moments each has a processor for itself, which is more than its share.
  explicit PeakFlops(const Policy& policy, int ranks = 1);

  /// Nothing where it is unknown.
  [[nodiscard]] std::optional<double> value() const { return value_; }
  /// One sentence: how it is known, or why not.
  [[nodiscard]] const std::string& source() const { return source_; }
  /// The same of the sum over so many ranks.
  [[nodiscard]] std::string source_on(int ranks) const;

  /// After a step that reached `rate` FLOP/s: measures again for some milliseconds, if the step was
  /// faster than the peak or the last measurement is a while ago. True if the peak is now higher.
  bool update(double rate);

 private:
  using Clock = std::chrono::steady_clock;
  bool measure();  ///< true if the best rose

  Policy policy_;
  std::optional<double> value_;
  std::string source_;
  Clock::time_point next_;
  std::chrono::duration<double> pause_;
};

/// One line for the terminal: what the MFU of the progress lines is a share of. `flops`: of all
/// ranks, in FLOP/s; nothing where it is unknown.
std::string mfu_line(std::optional<double> flops, const std::string& source);

/// The best rate of some small matrix products under `policy`, as steps could reach it where
/// nothing else took time.
double measure_product_flops(const Policy& policy);

/// How long a step is likely to take here.
struct StepTime {
  double seconds = 0;
  std::string how;  ///< what was measured, and what was reckoned from it
};

/// Measures a part of a step of the config for at most some two seconds: one micro-batch forward
/// and backward, of fewer sequences, shorter ones, fewer layers, a smaller vocabulary and
/// width until that is short enough and fits a gibibyte, and the optimizer's update of its
/// parameters. The whole step is reckoned by floating-point operations, the update by parameters.
/// Apply the policy first.
StepTime estimate_step_time(const config::TrainConfig& config, const Policy& policy);

}  // namespace olmo::train
