#include "train/phases.h"

#include <algorithm>

namespace olmo::train {
namespace {

using dist::Collective;

double seconds_between(PhaseClock::Clock::time_point start, PhaseClock::Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

}  // namespace

PhaseClock::Scope::~Scope() {
  const auto now = Clock::now();
  if (phase_) {
    clock_.times_.of(*phase_) += seconds_between(start_, now);
  } else {
    clock_.start_ += now - start_;
  }
  const dist::Traffic after = clock_.traffic_();
  for (std::size_t i = 0; i < after.kinds.size(); ++i) {
    clock_.before_.kinds[i].bytes += after.kinds[i].bytes - before_.kinds[i].bytes;
    clock_.before_.kinds[i].seconds += after.kinds[i].seconds - before_.kinds[i].seconds;
  }
}

void PhaseClock::begin() {
  const double wait = times_.of(Phase::kWait);
  times_ = {};
  times_.of(Phase::kWait) = wait;
  before_ = traffic_();
  start_ = Clock::now();
}

StepTimes PhaseClock::end() {
  const dist::Traffic traffic = traffic_();
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
