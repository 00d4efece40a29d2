#include "core/files/unfinished_output.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "core/process/process.h"

namespace olmo {
namespace {

/// Signals belong to the process, and so does what is asked of its outputs.
struct Outputs {
  std::mutex mutex;
  int alive = 0;
  std::string name;                    ///< of the outermost
  std::optional<StopSignals> signals;  ///< nothing: none is alive, or somebody else notes signals
  bool takes_names = false;
  bool asked_late = false;  ///< a signal came when the last output was whole
};

Outputs& outputs() {
  static Outputs all;
  return all;
}

std::atomic<bool> g_noting = false;  ///< outputs().signals is there

}  // namespace

UnfinishedOutput::UnfinishedOutput(std::string name) {
  Outputs& all = outputs();
  const std::lock_guard held(all.mutex);
  if (all.asked_late && all.signals) all.signals->throw_if_requested(name + " was not written");
  if (++all.alive > 1) return;
  all.name = std::move(name);
  if (StopSignals::exist()) return;
  all.signals.emplace();
  g_noting = true;
}

UnfinishedOutput::~UnfinishedOutput() {
  Outputs& all = outputs();
  const std::lock_guard held(all.mutex);
  if (--all.alive > 0) return;
  all.takes_names = false;
  if (!all.signals) return;
  // It stays, for what is written next: nobody has heard of the signal yet.
  all.asked_late = all.signals->requested() != StopRequest::kNone;
  if (all.asked_late) return;
  g_noting = false;
  all.signals.reset();
}

void UnfinishedOutput::take_names() {
  end_if_asked();
  const std::lock_guard held(outputs().mutex);
  outputs().takes_names = true;
}

void end_if_asked() {
  if (!g_noting) return;
  Outputs& all = outputs();
  const std::lock_guard held(all.mutex);
  if (all.signals && !all.takes_names && all.alive > 0)
    all.signals->throw_if_requested(all.name + " was not written");
}

}  // namespace olmo
