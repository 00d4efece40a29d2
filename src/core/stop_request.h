#pragma once

#include <string>

namespace olmo {

/// What a signal has asked for.
enum class StopRequest {
  kNone,
  kStop,       ///< SIGTERM and the like: save and exit 75
  kInterrupt,  ///< SIGINT (Ctrl-C): save and exit 130; a second one kills at once
};

/// While an object lives, signals that would end the process are noted instead: SIGTERM,
/// SIGUSR1, SIGUSR2, SIGXCPU (what batch systems send), SIGHUP (a lost terminal, unless it was
/// ignored from the start, as by nohup), SIGINT, SIGPWR, and the timers SIGALRM, SIGVTALRM and
/// SIGPROF. SIGQUIT still kills at once. A reader of stdout or stderr that goes away ends nothing
/// either. One at a time.
class StopSignals {
 public:
  StopSignals();
  /// If a signal was noted, signals stay noted, because the process is ending. Otherwise they act
  /// as they did before.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] StopRequest requested() const;
  /// The signal that asked last, e.g. `SIGTERM`.
  [[nodiscard]] std::string name() const;
  /// Throws Error(kStopped) or Error(kInterrupted) with `consequence`, if a signal has asked.
  void throw_if_requested(const std::string& consequence) const;
};

}  // namespace olmo
