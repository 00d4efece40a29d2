// Ranks as processes, on one machine or many, over TCP: c10d's Gloo.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "dist/communicator.h"
#include "dist/store.h"

namespace olmo::dist {

struct GlooOptions : Lookout {
  /// The longest that a rank waits for another: to come, and in a collective. Half an hour, as
  /// OLMo's.
  std::chrono::milliseconds limit = std::chrono::minutes(30);
  /// At which the rank listens; empty: at the interfaces that GLOO_SOCKET_IFNAME names.
  std::string address = {};
};

/// Meets the other ranks in `store`, under keys that begin with `name`, and connects with each.
/// Throws Error(kFailure) that names the ranks that have not come.
///
/// Before each collective the ranks compare what they are about to do, so that one that is out of
/// step is an error which names it, and no message is taken for another.
///
/// Gloo alone does not always notice that a rank has gone: without a `check` that does, a wait may
/// last until the limit.
///
/// After a failure the connections and the threads that wait on them are left alone, since nothing
/// ends c10d's waits but the limit: the process should then end by std::_Exit, once its own work is
/// in order.
std::unique_ptr<Communicator> join_gloo(const Store& store, const std::string& name, int rank,
                                        int size, GlooOptions options = {});

}  // namespace olmo::dist
