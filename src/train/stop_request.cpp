#include "train/stop_request.h"

#include <array>
#include <csignal>

#include "core/error.h"

namespace olmo::train {
namespace {

// A signal handler can reach nothing but a global; this is the only one of the harness.
volatile std::sig_atomic_t g_signal = 0;

constexpr std::array<int, 3> kSignals = {SIGTERM, SIGUSR1, SIGINT};

void note_signal(int signal) {
  g_signal = signal;
  if (signal == SIGINT) std::signal(SIGINT, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  g_signal = 0;
  for (const int signal : kSignals) {
    struct sigaction action {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;  // file writes of SQLite and HDF5 must not be cut short
    OLMO_CHECK(::sigaction(signal, &action, nullptr) == 0);
  }
}

StopSignals::~StopSignals() {
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
}

StopRequest StopSignals::requested() const {
  const int signal = g_signal;
  if (signal == 0) return StopRequest::kNone;
  return signal == SIGINT ? StopRequest::kInterrupt : StopRequest::kStop;
}

}  // namespace olmo::train
