// Whether the machines of the ranks let each other connect at any port, as ranks do.
//
// A firewall that lets the meeting place's port pass and drops what goes to others is common, and
// Gloo tries to connect through it for many minutes without a word.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "dist/store.h"

namespace olmo::dist {

struct ReachTrial {
  int rank = 0, size = 1;
  std::string address = {};  ///< at which this rank listens; empty or a loopback's: not tried
  std::chrono::milliseconds patience{15'000};  ///< for an answer
  std::chrono::milliseconds limit{60'000};     ///< for another rank to come here
  std::function<void()> check = {};  ///< asked while other ranks are waited for; may throw
};

/// Connects with the next rank, and lets the one before connect with this one. Every rank calls it,
/// after all have enlisted in `store`. Throws Error(kFailure) that names both ends and the reason.
void require_reach(Store& store, const ReachTrial& trial);

}  // namespace olmo::dist
