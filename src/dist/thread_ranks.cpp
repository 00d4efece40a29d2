#include "dist/thread_ranks.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/named_tensors.h"

namespace olmo::dist {
namespace {

/// What a rank brings to a collective: a piece for each rank.
using Pieces = std::vector<std::span<const std::byte>>;

/// The meeting place of the ranks. The n-th collective of all ranks is one exchange: each posts its
/// pieces, takes those of the others when all have posted, and nobody's memory is free before all
/// have taken.
class World {
 public:
  explicit World(int size) : size_(size) {}

  [[nodiscard]] int size() const { return size_; }

  void post(std::int64_t number, int rank, Pieces pieces) {
    const std::lock_guard lock(mutex_);
    Exchange& exchange = exchanges_[number];
    if (exchange.of.empty()) exchange.of.resize(static_cast<std::size_t>(size_));
    exchange.of[static_cast<std::size_t>(rank)] = std::move(pieces);
    if (++exchange.posted == size_) changed_.notify_all();
  }

  /// Calls `take` for every rank's pieces, by rank, and returns when all ranks have taken theirs.
  void take(std::int64_t number, const std::function<void(int, const Pieces&)>& take) {
    std::unique_lock lock(mutex_);
    Exchange& exchange = exchanges_.at(number);  // stays where it is: a map's nodes do
    wait(lock, [&] { return exchange.posted == size_; });
    lock.unlock();
    for (int rank = 0; rank < size_; ++rank)
      take(rank, exchange.of[static_cast<std::size_t>(rank)]);
    lock.lock();
    if (++exchange.taken == size_) changed_.notify_all();
    wait(lock, [&] { return exchange.taken == size_; });
    if (++exchange.left == size_) exchanges_.erase(number);
  }

  /// From here on every wait throws.
  void fail(int rank, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = "rank " + std::to_string(rank) + " failed: " + why;
    for (const auto& child : children_) child->fail(rank, why);
    changed_.notify_all();
  }

  /// The world of the ranks with one color at the n-th collective.
  std::shared_ptr<World> child(std::int64_t number, int color, int size) {
    const std::lock_guard lock(mutex_);
    auto& found = splits_[{number, color}];
    if (!found) {
      found = std::make_shared<World>(size);
      children_.push_back(found);
    }
    return found;
  }

 private:
  struct Exchange {
    std::vector<Pieces> of;  ///< by rank
    int posted = 0, taken = 0, left = 0;
  };

  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, const Condition& condition) {
    changed_.wait(lock, [&] { return condition() || !failure_.empty(); });
    if (!condition()) throw Error(ErrorKind::kFailure, failure_);
  }

  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, Exchange> exchanges_;  ///< by number
  std::map<std::pair<std::int64_t, int>, std::shared_ptr<World>> splits_;
  std::vector<std::shared_ptr<World>> children_;
  std::string failure_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<World> world, int rank)
      : Communicator(rank, world->size()), world_(std::move(world)) {}

  std::unique_ptr<Communicator> split(int color) override {
    const Part part = part_of(color);
    return std::make_unique<ThreadCommunicator>(world_->child(next_, color, part.size), part.rank);
  }

 private:
  /// `receive`: what to do with each rank's pieces.
  Pending exchange(Pieces pieces, std::function<void(int, const Pieces&)> receive) {
    const std::int64_t number = next_++;
    world_->post(number, rank(), std::move(pieces));
    return Pending(
        [world = world_, number, receive = std::move(receive)] { world->take(number, receive); });
  }

  Pending start_all_gather(const at::Tensor& mine, const at::Tensor& all) override {
    const std::size_t bytes = mine.nbytes();
    return exchange({host_bytes(mine)}, [all, bytes](int from, const Pieces& pieces) {
      OLMO_CHECK(pieces.size() == 1 && pieces[0].size() == bytes);
      copy(pieces[0], mutable_host_bytes(all).subspan(static_cast<std::size_t>(from) * bytes));
    });
  }

  Pending start_all_to_all(const at::Tensor& send, std::span<const std::int64_t> send_counts,
                           const at::Tensor& receive,
                           std::span<const std::int64_t> receive_counts) override {
    const auto element = static_cast<std::size_t>(send.element_size());
    Pieces pieces;
    std::size_t begin = 0;
    for (const auto count : send_counts) {
      const std::size_t bytes = static_cast<std::size_t>(count) * element;
      pieces.push_back(host_bytes(send).subspan(begin, bytes));
      begin += bytes;
    }
    std::vector<std::size_t> offsets{0};
    for (const auto count : receive_counts)
      offsets.push_back(offsets.back() + static_cast<std::size_t>(count) * element);
    return exchange(std::move(pieces),
                    [receive, offsets, me = rank()](int from, const Pieces& theirs) {
                      const auto source = static_cast<std::size_t>(from);
                      const auto& piece = theirs.at(static_cast<std::size_t>(me));
                      OLMO_CHECK(piece.size() == offsets[source + 1] - offsets[source]);
                      copy(piece, mutable_host_bytes(receive).subspan(offsets[source]));
                    });
  }

  Pending start_broadcast(const at::Tensor& tensor, int root) override {
    Pieces pieces;
    if (rank() == root) pieces.push_back(host_bytes(tensor));
    return exchange(std::move(pieces), [tensor, root, me = rank()](int from, const Pieces& theirs) {
      if (from != root || me == root) return;
      OLMO_CHECK(theirs.size() == 1 && theirs[0].size() == tensor.nbytes());
      copy(theirs[0], mutable_host_bytes(tensor));
    });
  }

  void run_barrier() override {
    exchange({}, [](int, const Pieces&) {}).wait();
  }

  static void copy(std::span<const std::byte> from, std::span<std::byte> to) {
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  }

  std::shared_ptr<World> world_;
  std::int64_t next_ = 0;  ///< number of the next collective
};

}  // namespace

void run_ranks(int size, const std::function<void(Communicator&)>& work) {
  const auto world = std::make_shared<World>(size);
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&](int rank) {
    try {
      ThreadCommunicator ranks(world, rank);
      work(ranks);
    } catch (const std::exception& error) {
      {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      world->fail(rank, error.what());
    }
  };
  std::vector<std::jthread> threads;
  for (int rank = 1; rank < size; ++rank) threads.emplace_back(run, rank);
  run(0);
  threads.clear();  // waits
  if (first) std::rethrow_exception(first);
}

}  // namespace olmo::dist
