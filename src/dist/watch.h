// Who has died, hangs or is out of step. A collective waits for all ranks, so that one that fails
// holds up every other; the transport says at most that a connection broke, and a rank that hangs
// says nothing. Here each rank tells a store once a second that it lives and where it stands, and
// the first failure that anybody finds stands there for all: every rank names the same rank and
// ends with the same exit code.
//
// Each rank looks after the two ranks beside it and after the failure, so that nobody reads the
// heartbeats of a thousand ranks. Whatever ranks die, one of them has a neighbour that lives.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/process_identity.h"
#include "dist/communicator.h"
#include "dist/store.h"

namespace olmo::dist {

/// What stands for all ranks once one has failed.
struct Failure {
  int rank = 0;  ///< that has failed
  ErrorKind kind = ErrorKind::kStopped;
  std::string message = {};  ///< names the rank
  int reporter = 0;          ///< that has found it; kNobody: each rank did by itself
};
inline constexpr int kNobody = -1;
/// The communicator of all ranks, whose name goes without saying.
inline constexpr char kWorld[] = "world";

/// A failure as an exception, on whatever rank it is thrown.
class RankFailure : public Error {
 public:
  explicit RankFailure(Failure failure)
      : Error(failure.kind, failure.message), failure_(std::move(failure)) {}
  [[nodiscard]] const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
};

struct WatchLimits {
  using Clock = std::chrono::steady_clock;

  std::chrono::milliseconds beat{1000};  ///< between two heartbeats
  /// Without a heartbeat for so long a rank is dead or stopped. A machine whose memory is full, or
  /// a disk that is away for a while, holds a process up for seconds: half a minute is rarely
  /// wrong, and short beside the hours between two failures.
  std::chrono::milliseconds dead{30'000};
  /// A rank that lives, but has not come for so long to the collective in which its neighbour
  /// waits, hangs. What it does in between (an evaluation, a save) may take minutes.
  std::chrono::milliseconds hung{1'800'000};
  /// Called on the watch's thread when a failure has been known for twice `dead` and the process
  /// still runs: it hangs itself. Empty: nothing is done.
  std::function<void(const Failure&)> end_process = {};
  /// By which silence is measured.
  std::function<Clock::time_point()> now = &Clock::now;
};

/// The watch of one rank over its neighbours, as long as the object lives.
class Watch {
 public:
  /// `store` holds what enlist() wrote for each rank. `host`: the rank that hosts it, if one of the
  /// ranks does. Where the store ends, that rank has.
  Watch(const Store& store, int rank, int size, WatchLimits limits,
        std::optional<int> host = std::nullopt);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // What a transport tells and asks. Any thread may.

  /// Where this rank stands in a communicator; asked by the watch's thread. `name` is the same on
  /// all its ranks, and no other's, so that equal numbers mean the same collective on each. Empty:
  /// the communicator is gone.
  void follow(const std::string& name, std::function<Position()> position);
  /// Throws RankFailure if a rank is known to have failed.
  void check() const;
  /// What the transport met (a connection that broke) has a cause: waits until it is known and
  /// throws it. Throws RankFailure(kStopped) with `what` if no cause shows.
  [[noreturn]] void explain(const std::string& what);

  // What a rank tells.

  void at_step(std::int64_t step);
  /// A rank has failed. Returns the failure that stands for all: this one, or an earlier one.
  Failure post(const Failure& failure);
  /// This rank has failed. The message of the failure begins with its name.
  Failure post(ErrorKind kind, const std::string& message);
  /// This rank has computed all: that others end, and the store with them, is no failure any more.
  void leave();

  [[nodiscard]] std::optional<Failure> failure() const;
  /// Between two heartbeats. Of a thousand ranks each asks the store less often, so that it is
  /// asked some thousand times a second at most.
  [[nodiscard]] std::chrono::milliseconds pause() const;

 private:
  using Time = WatchLimits::Clock::time_point;
  /// Where a rank stands in a communicator, and since when this one has known it.
  struct Standing {
    Position position = {};
    Time since = {};
  };
  using Standings = std::map<std::string, Standing>;  ///< by the communicator's name
  /// A rank, as its beats tell it.
  struct Place {
    Standings in = {};
    std::int64_t step = -1;

    /// `now`: where the rank stands. What has not changed since is so for as long as before.
    void update(const Place& now, Time time);
  };
  /// A rank beside this one.
  struct Neighbour {
    int rank = 0;
    std::optional<ProcessIdentity> who = {};
    std::string beat = {};  ///< the last one
    Time changed = {};
    Place place = {};
  };

  void loop();
  void look(Store& store);
  void write_beat(Store& store);
  void read_failure(Store& store);
  void judge(Store& store, Neighbour& neighbour, const std::optional<std::string>& beat);
  void judge_silence(Store& store, const Neighbour& neighbour);
  void judge_place(Store& store, const Neighbour& neighbour);
  void judge_standing(Store& store, const Neighbour& neighbour, const std::string& name,
                      const Standing& theirs, const Standing& mine);
  void lose_store(const std::string& why);
  Failure post_failure(Store& store, const Failure& failure);
  void learn_from(Store& store, const Failure& failure);
  void learn(const Failure& failure);
  void end_if_stuck();

  static std::optional<Place> parse_place(const std::string& beat);

  const int rank_, size_;
  const WatchLimits limits_;
  const std::optional<int> host_;
  const ProcessIdentity self_;
  std::unique_ptr<Store> store_;  ///< of the thread
  std::vector<Neighbour> neighbours_;
  Time looked_ = {};  ///< when the last look began
  Place place_ = {};  ///< as the last beat told it
  std::int64_t beats_ = 0;
  std::optional<Time> trouble_ = {};  ///< of the store, since

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::function<Position()>> followed_;  ///< by the communicator's name
  std::int64_t step_ = -1;
  std::optional<Failure> failure_, to_post_;
  Time learned_ = {};
  bool leaving_ = false, ended_ = false;
  std::thread thread_;  ///< last: begun when all else is there
};

/// Says that this process is rank `rank`. Throws Error(kUsage) if another process has said so.
void enlist(Store& store, int rank, const ProcessIdentity& who);
/// Who has said to be that rank.
std::optional<ProcessIdentity> enlisted(Store& store, int rank);
/// Makes the failure that of all ranks, unless one stands already. Returns the one that stands. For
/// who is no rank; ranks have a Watch.
Failure post_failure(Store& store, const Failure& failure);
/// Whether all ranks know of a failure, but those that have not come, and the one that has failed:
/// it may be dead.
bool all_know(Store& store, int size, const Failure& failure);
/// "rank 3 (process 71 on nid007)"
std::string name_of_rank(int rank, const std::optional<ProcessIdentity>& who);

}  // namespace olmo::dist
