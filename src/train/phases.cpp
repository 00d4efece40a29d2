#include "train/phases.h"

#include <algorithm>
#include <numeric>

namespace olmo::train {
namespace {

using dist::Collective;

double seconds_between(PhaseClock::Clock::time_point start, PhaseClock::Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

}  // namespace

std::string_view to_string(Phase phase) {
  static constexpr std::array<std::string_view, kPhases> kNames = {"data",     "compute", "gather",
                                                                   "exchange", "save",    "wait"};
  return kNames[static_cast<std::size_t>(phase)];
}

PhaseClock::Scope::~Scope() { clock_.times_.of(phase_) += seconds_between(start_, Clock::now()); }

void PhaseClock::begin(const dist::Traffic& traffic) {
  const double wait = times_.of(Phase::kWait);
  times_ = {};
  times_.of(Phase::kWait) = wait;
  before_ = traffic;
  start_ = Clock::now();
}

StepTimes PhaseClock::end(const dist::Traffic& traffic) {
  StepTimes times = std::exchange(times_, {});
  const auto gather = {Collective::kAllGather, Collective::kBroadcast, Collective::kBarrier};
  for (const Collective kind : gather) {
    times.of(Phase::kGather) += traffic.of(kind).seconds - before_.of(kind).seconds;
    times.gathered_bytes += traffic.of(kind).bytes - before_.of(kind).bytes;
  }
  const auto& exchanged = traffic.of(Collective::kAllToAll);
  const auto& before = before_.of(Collective::kAllToAll);
  times.of(Phase::kExchange) += exchanged.seconds - before.seconds;
  times.exchanged_bytes = exchanged.bytes - before.bytes;
  double elsewhere = 0;  // of the time since begin(), in which no kWait lies
  for (const Phase phase : {Phase::kData, Phase::kGather, Phase::kExchange, Phase::kSave})
    elsewhere += times.of(phase);
  times.of(Phase::kCompute) = std::max(0.0, seconds_between(start_, Clock::now()) - elsewhere);
  return times;
}

}  // namespace olmo::train
