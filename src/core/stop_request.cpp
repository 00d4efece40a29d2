#include "core/stop_request.h"

#include <array>
#include <csignal>
#include <cstring>

#include "core/error.h"
#include "core/process.h"

namespace olmo {
namespace {

struct StopSignal {
  int number;
  bool always;  ///< also if it was ignored or handled when we started
};

constexpr std::array<StopSignal, 10> kSignals = {{{SIGTERM, true},
                                                  {SIGUSR1, true},
                                                  {SIGINT, true},
                                                  {SIGUSR2, false},
                                                  {SIGXCPU, false},
                                                  {SIGHUP, false},
                                                  {SIGPWR, false},
                                                  {SIGALRM, false},
                                                  {SIGVTALRM, false},
                                                  {SIGPROF, false}}};

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t g_signal = 0;

void note_signal(int signal) {
  g_signal = signal;
  if (signal == SIGINT) std::signal(SIGINT, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  g_signal = 0;
  outlive_stdout();
  for (const auto& [number, always] : kSignals) {
    struct sigaction action {};
    OLMO_CHECK(::sigaction(number, nullptr, &action) == 0);
    if (!always && action.sa_handler != SIG_DFL) continue;
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;  // file writes of SQLite must not be cut short
    OLMO_CHECK(::sigaction(number, &action, nullptr) == 0);
  }
}

StopSignals::~StopSignals() {
  if (g_signal != 0) return;
  for (const auto& stop : kSignals) {
    struct sigaction action {};
    if (::sigaction(stop.number, nullptr, &action) == 0 && action.sa_handler == note_signal)
      std::signal(stop.number, SIG_DFL);
  }
}

StopRequest StopSignals::requested() const {
  const int signal = g_signal;
  if (signal == 0) return StopRequest::kNone;
  return signal == SIGINT ? StopRequest::kInterrupt : StopRequest::kStop;
}

std::string StopSignals::name() const {
  const char* name = ::sigabbrev_np(g_signal);
  return name == nullptr ? "a signal" : std::string("SIG") + name;
}

void StopSignals::throw_if_requested(const std::string& consequence) const {
  if (requested() == StopRequest::kNone) return;
  throw Error(
      requested() == StopRequest::kInterrupt ? ErrorKind::kInterrupted : ErrorKind::kStopped,
      "stopped by " + name() + "; " + consequence);
}

}  // namespace olmo
