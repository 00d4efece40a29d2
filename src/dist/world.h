// The ranks of one command, from the moment that they meet until all have ended.
//
// However a rank fails, all end alike: an error of one rank is told to the others, a rank that dies
// or hangs is found by the watch, and every rank returns the same exit code. Rank 0 says why, and
// so does the rank that failed or the one that found it; the others say nothing.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/compute/gpu.h"
#include "dist/communicator.h"
#include "dist/launch.h"
#include "dist/watch.h"

namespace olmo::dist {

/// How long ranks wait for each other.
struct RankLimits {
  /// For all to come. The nodes of a large job start over minutes.
  std::chrono::milliseconds join{300'000};
  WatchLimits watch = {};
};

/// This process among the ranks.
class World {
 public:
  World();  ///< alone
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] Communicator& ranks() { return *ranks_; }
  [[nodiscard]] const Launch& launch() const { return launch_; }
  [[nodiscard]] const Placement& placement() const { return placement_; }
  /// This rank on its machine.
  [[nodiscard]] LocalRank local() const {
    return {placement_.local_rank, placement_.local_size, sharers_};
  }
  /// The machine of each rank.
  [[nodiscard]] const std::vector<std::string>& hosts() const { return hosts_; }
  /// A step begins. Throws RankFailure if a rank is known to have failed: a rank that never has to
  /// wait for another would not learn it.
  void at_step(std::int64_t step);

 private:
  friend int run_world(const Launch&, const RankLimits&, const std::function<int(World&)>&);

  /// Comes to the place where the ranks meet.
  World(const Launch& launch, const RankLimits& limits);
  /// Waits for all ranks, and connects with them.
  void connect();
  void require_one_size();
  void require_one_program();
  void wait_for_all();
  void exchange_places();
  /// At which this rank listens; empty: at the interface that GLOO_SOCKET_IFNAME names.
  [[nodiscard]] std::string own_address();
  /// When all ranks have come here, none needs another any more.
  void leave();
  void await_rank_0(const Failure& failure);
  /// Says what is to be said, and ends the process with the exit code of all.
  [[noreturn]] void end_after(const Failure& failure);

  Launch launch_;
  RankLimits limits_;
  Placement placement_;
  int sharers_ = 1;
  std::vector<std::string> hosts_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Communicator> ranks_;
};

/// Meets the other ranks of the launch, does `work` and returns its exit code, which is to be the
/// same on all ranks. Errors of one process alone, and of one that cannot meet the others, are the
/// caller's. Any other is told here. An AgreedError returns its exit code; after a failure threads
/// of the transport may still wait for a rank that is gone, and the process ends here, by
/// std::_Exit, with the exit code of all. By then all that `work` made has been destroyed.
int run_world(const Launch& launch, const RankLimits& limits,
              const std::function<int(World&)>& work);

}  // namespace olmo::dist
