// Where the time of a step goes, on one rank.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "dist/communicator.h"

namespace olmo::train {

enum class Phase {
  kData,      ///< reading batches
  kCompute,   ///< all that is in no other phase
  kGather,    ///< waiting for weights, losses and norms of other ranks
  kExchange,  ///< waiting for gradients of other ranks
  kSave,      ///< standing still for a checkpoint
  kWait,      ///< waiting for all ranks to end the step
};
inline constexpr std::size_t kPhases = 6;

/// As the record names it.
std::string_view to_string(Phase phase);

/// A step of one rank. Travels between ranks as bytes.
struct StepTimes {
  std::array<double, kPhases> seconds{};
  std::int64_t gathered_bytes = 0;   ///< sent to other ranks by collectives that gather, broadcast
  std::int64_t exchanged_bytes = 0;  ///< by those that exchange

  [[nodiscard]] double of(Phase phase) const { return seconds[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] double& of(Phase phase) { return seconds[static_cast<std::size_t>(phase)]; }
  /// Its own work, by which it holds up others.
  [[nodiscard]] double own() const { return of(Phase::kData) + of(Phase::kCompute); }
};

/// Divides a rank's time into phases. What waits for other ranks is told by the traffic of its
/// communicators, which count it.
class PhaseClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// While it lives, time is of its phase.
  class Scope {
   public:
    Scope(PhaseClock& clock, Phase phase) : clock_(clock), phase_(phase), start_(Clock::now()) {}
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseClock& clock_;
    Phase phase_;
    Clock::time_point start_;
  };
  [[nodiscard]] Scope in(Phase phase) { return {*this, phase}; }

  /// A step begins. `traffic`: of the rank so far. What was counted since the last one ended is
  /// dropped, but for the time of kWait, which is of the end of a step.
  void begin(const dist::Traffic& traffic);
  /// It ends.
  StepTimes end(const dist::Traffic& traffic);

 private:
  StepTimes times_;
  dist::Traffic before_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace olmo::train
