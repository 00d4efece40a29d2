#include "sharding/relay.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>

#include "core/compute/named_tensors.h"
#include "core/process/waiting_threads.h"
#include "dist/exchange.h"

namespace olmo::sharding {
namespace {

constexpr int kMostThreads = 8;  // more hash faster than any disk writes

/// Calls `step` until it throws once.
class Guarded {
 public:
  explicit Guarded(const std::function<void(const Stretch&)>& step) : step_(step) {}
  /// Returns whether it was done.
  bool operator()(const Stretch& stretch) {
    if (failed_) return false;
    try {
      step_(stretch);
      return true;
    } catch (...) {  // the caller's to throw
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      failed_ = true;
      return false;
    }
  }
  [[nodiscard]] const std::exception_ptr& error() const { return error_; }

 private:
  const std::function<void(const Stretch&)>& step_;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr error_;
};

/// What each rank has: its parts of the tensors, and how many threads.
struct Gathered {
  Gathered(dist::Communicator& ranks, std::span<const ByteRange> mine, int own_threads) {
    std::vector<ByteRange> sent(mine.begin(), mine.end());
    sent.push_back({0, own_threads});  // in one exchange
    const auto all = dist::all_gather_values(ranks, std::span<const ByteRange>(sent));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((i + 1) % sent.size() != 0)
        ranges.push_back(all[i]);
      else
        threads = std::min(threads, static_cast<int>(all[i].size()));
    }
    threads = std::max(threads, 1);
  }

  std::vector<ByteRange> ranges;
  int threads = kMostThreads;  ///< the fewest
};

/// The messages between this rank, the `mine` of a handover, and each other, the `theirs`.
struct Messages {
  Messages(const std::vector<Handover>& handovers, dist::Communicator& ranks, int Handover::*mine,
           int Handover::*theirs, std::size_t size)
      : counts(static_cast<std::size_t>(ranks.size())) {
    for (const Handover& handover : handovers)
      if (handover.*mine == ranks.rank()) in_order.push_back(handover);
    std::ranges::stable_sort(in_order, {}, theirs);
    for (const Handover& handover : in_order)
      counts[static_cast<std::size_t>(handover.*theirs)] += static_cast<std::int64_t>(size);
  }
  [[nodiscard]] std::int64_t bytes() const {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  }

  std::vector<Handover> in_order;    ///< as they lie in the buffer: by the other rank
  std::vector<std::int64_t> counts;  ///< bytes of each other rank
};

}  // namespace

Relay::Relay(dist::Communicator& ranks, const std::vector<std::int64_t>& sizes,
             std::span<const ByteRange> mine, int threads)
    : ranks_(ranks), lost_(sizes.size()) {
  const Gathered gathered(ranks, mine, threads);
  threads_ = gathered.threads;
  rounds_ = RelayRounds(sizes, gathered.ranges, {.lanes = threads_, .window = std::nullopt});
}

std::exception_ptr Relay::run(std::span<std::byte> states, std::size_t size,
                              const std::function<void(const Stretch&)>& step) {
  Guarded guarded(step);
  while (!rounds_.done()) {
    const auto round = rounds_.next(ranks_.rank());
    dist::Pending travelling;
    if (!round.travelling.empty()) travelling = send(round.travelling, states, size);
    const auto go_on = [&](std::size_t lane) {
      for (const Stretch& stretch : round.lanes[lane]) {
        if (lost_[stretch.tensor] == 0 && !guarded(stretch)) lost_[stretch.tensor] = 1;
      }
    };
    // Not OpenMP's threads: a step may be computed meanwhile.
    for_each_while_waiting(round.lanes.size(), go_on, static_cast<std::size_t>(threads_));
    travelling.wait();
    take(round.travelling, states, size);
  }
  return guarded.error();
}

/// A message is a state, and whether it was lost.
dist::Pending Relay::send(const std::vector<Handover>& handovers, std::span<const std::byte> states,
                          std::size_t size) {
  const Messages out(handovers, ranks_, &Handover::from, &Handover::to, size + 1);
  const Messages in(handovers, ranks_, &Handover::to, &Handover::from, size + 1);
  sent_ = new_tensor({out.bytes()}, at::kByte);
  received_ = new_tensor({in.bytes()}, at::kByte);
  auto* at = mutable_host_bytes(sent_).data();
  for (const Handover& handover : out.in_order) {
    std::memcpy(at, states.data() + handover.tensor * size, size);
    at[size] = static_cast<std::byte>(lost_[handover.tensor]);
    at += size + 1;
  }
  return ranks_.all_to_all(sent_, out.counts, received_, in.counts);
}

void Relay::take(const std::vector<Handover>& handovers, std::span<std::byte> states,
                 std::size_t size) {
  const Messages in(handovers, ranks_, &Handover::to, &Handover::from, size + 1);
  const auto* at = in.in_order.empty() ? nullptr : host_bytes(received_).data();
  for (const Handover& handover : in.in_order) {
    std::memcpy(states.data() + handover.tensor * size, at, size);
    lost_[handover.tensor] = static_cast<char>(at[size]);
    at += size + 1;
  }
}

}  // namespace olmo::sharding
