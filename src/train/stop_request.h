#pragma once

namespace olmo::train {

/// What a signal has asked for.
enum class StopRequest {
  kNone,
  kStop,       ///< SIGTERM or SIGUSR1 (Slurm's warning): save and exit 75
  kInterrupt,  ///< SIGINT (Ctrl-C): save and exit 130; a second one kills at once
};

/// While it lives, SIGTERM, SIGUSR1 and SIGINT are noted instead of ending the process. One at a
/// time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] StopRequest requested() const;
};

}  // namespace olmo::train
