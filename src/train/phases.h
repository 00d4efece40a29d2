// Where the time of a step goes, on one rank.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "dist/communicator.h"
#include "store/runs/run_records.h"

namespace olmo::train {

enum class Phase {
  kData,      ///< reading batches
  kCompute,   ///< all that is in no other phase
  kGather,    ///< waiting for weights, losses and norms of other ranks
  kExchange,  ///< waiting for gradients of other ranks
  kSave,      ///< standing still for a checkpoint
  kWait,      ///< waiting for all ranks to end the step
};
inline constexpr std::size_t kPhases = store::kPhaseNames.size();

/// As the record names it.
inline std::string_view to_string(Phase phase) {
  return store::kPhaseNames[static_cast<std::size_t>(phase)];
}

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
/// communicators, which count it. Bytes are those of the step itself; what is sent within a scope
/// is not counted. A plan knows them (sharding/traffic.h), but a traced step sends its digests
/// besides, and one after an evaluation finds weights that this has gathered.
class PhaseClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// While it lives, time is of its phase, waits for other ranks included; without one, of no step.
  class Scope {
   public:
    Scope(PhaseClock& clock, std::optional<Phase> phase)
        : clock_(clock), phase_(phase), start_(Clock::now()), before_(clock.traffic_()) {}
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseClock& clock_;
    std::optional<Phase> phase_;
    Clock::time_point start_;
    dist::Traffic before_;
  };
  [[nodiscard]] Scope in(Phase phase) { return {*this, phase}; }
  /// Of what is done between steps: evaluations, hashes of states.
  [[nodiscard]] Scope aside() { return {*this, std::nullopt}; }

  /// `traffic`: of the rank so far.
  explicit PhaseClock(std::function<dist::Traffic()> traffic) : traffic_(std::move(traffic)) {}

  /// A step begins. What was counted since the last one ended is dropped, but for the time of
  /// kWait, which is of the end of a step.
  void begin();
  /// It ends.
  StepTimes end();

 private:
  std::function<dist::Traffic()> traffic_;
  StepTimes times_;
  dist::Traffic before_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace olmo::train
