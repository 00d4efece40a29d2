#include "dist/thread_ranks.h"

#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "dist/step.h"

namespace olmo::dist {
namespace {

/// What a rank brings to a collective, and where it wants what others bring.
struct Piece {
  Step step;
  std::vector<std::span<const std::byte>> to;  ///< by rank
  std::vector<std::span<std::byte>> from;      ///< by rank; empty: nothing is wanted
};

/// The meeting place of the ranks. The n-th collective of all ranks is one exchange, and the rank
/// that comes last copies for all. So no rank has to come back before another may go on. Memory is
/// touched only while each rank waits for the exchange or may still do so: a wait does not end,
/// with an error neither, while somebody copies.
class World {
 public:
  explicit World(int size) : size_(size) {}

  [[nodiscard]] int size() const { return size_; }

  void post(int rank, Piece piece) {
    std::unique_lock lock(mutex_);
    if (failure_) return;  // wait() says it
    if (!gone_.empty()) miss(*gone_.begin(), rank, piece.step);
    if (failure_) return;
    Exchange& exchange = exchanges_[piece.step.number];  // stays where it is: a map's nodes do
    exchange.pieces.emplace(rank, std::move(piece));
    if (static_cast<int>(exchange.pieces.size()) < size_) return;
    exchange.state = State::kCopying;
    lock.unlock();
    std::exception_ptr error;
    try {
      copy(exchange.pieces);
    } catch (const Error&) {
      error = std::current_exception();
    }
    lock.lock();
    exchange.error = error;
    exchange.state = State::kDone;
    changed_.notify_all();
  }

  void wait(std::int64_t number) {
    std::unique_lock lock(mutex_);
    const auto found = exchanges_.find(number);
    if (found == exchanges_.end()) throw Error(ErrorKind::kFailure, failure_.value());
    Exchange& exchange = found->second;
    changed_.wait(lock, [&] {
      return exchange.state == State::kDone || (exchange.state == State::kOpen && failure_);
    });
    if (exchange.state == State::kOpen) throw Error(ErrorKind::kFailure, *failure_);
    const auto error = exchange.error;
    if (++exchange.left == size_) exchanges_.erase(found);
    if (error) std::rethrow_exception(error);
  }

  /// From here on no exchange begins, and every wait for one throws.
  void fail(const std::string& why) {
    const std::lock_guard lock(mutex_);
    fail_locked(why);
  }

  /// The rank calls nothing more. That others do is an error of theirs.
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    gone_.insert(rank);
    for (const auto& [number, exchange] : exchanges_)
      if (exchange.state == State::kOpen && !exchange.pieces.contains(rank))
        miss(rank, exchange.pieces.begin()->first, exchange.pieces.begin()->second.step);
  }

  /// The world of the ranks with one color at the n-th collective.
  std::shared_ptr<World> child(std::int64_t number, int color, int size) {
    const std::lock_guard lock(mutex_);
    auto& found = children_[{number, color}];
    if (!found) found = std::make_shared<World>(size);
    if (failure_) found->fail(*failure_);
    return found;
  }

 private:
  enum class State { kOpen, kCopying, kDone };
  struct Exchange {
    std::map<int, Piece> pieces;  ///< by rank
    State state = State::kOpen;
    std::exception_ptr error;  ///< of the copy
    int left = 0;              ///< ranks that know that it is done
  };

  void fail_locked(const std::string& why) {
    if (failure_) return;
    failure_ = why;
    for (const auto& [key, child] : children_) child->fail(why);
    changed_.notify_all();
  }

  void miss(int gone, int rank, const Step& step) {
    fail_locked("rank " + std::to_string(gone) + " has ended, and rank " + std::to_string(rank) +
                " waits for it in " + to_string(step));
  }

  static void copy(const std::map<int, Piece>& pieces) {
    for (const auto& [me, mine] : pieces) {
      for (const auto& [other, theirs] : pieces) {
        const auto differs = mine.step.compare(me, other, theirs.step.to(me));
        if (differs) throw Error(ErrorKind::kFailure, to_string(*differs));
      }
    }
    for (const auto& [me, mine] : pieces) {
      for (const auto& [other, theirs] : pieces) {
        const auto to = mine.from.at(static_cast<std::size_t>(other));
        if (to.empty()) continue;
        const auto from = theirs.to.at(static_cast<std::size_t>(me));
        OLMO_CHECK(from.size() == to.size());
        if (from.data() != to.data()) std::memcpy(to.data(), from.data(), to.size());
      }
    }
  }

  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, Exchange> exchanges_;  ///< by number
  std::map<std::pair<std::int64_t, int>, std::shared_ptr<World>> children_;
  std::set<int> gone_;
  std::optional<std::string> failure_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<World> world, int rank)
      : Communicator(rank, world->size()), world_(std::move(world)) {}
  ~ThreadCommunicator() override {
    // A rank that fails says so itself, with its reason.
    if (std::uncaught_exceptions() == exceptions_) world_->leave(rank());
  }

  std::unique_ptr<Communicator> split(int color) override {
    const Part part = part_of(color);
    return std::make_unique<ThreadCommunicator>(world_->child(number_, color, part.size),
                                                part.rank);
  }

 private:
  Piece piece_of(Step step) const {
    const auto ranks = static_cast<std::size_t>(size());
    return {std::move(step), std::vector<std::span<const std::byte>>(ranks),
            std::vector<std::span<std::byte>>(ranks)};
  }

  /// `used`: the tensors whose memory the piece shows.
  Pending start(Piece piece, std::vector<at::Tensor> used) {
    const auto number = ++number_;
    piece.step.number = number;
    world_->post(rank(), std::move(piece));
    return Pending([world = world_, number, used = std::move(used)] { world->wait(number); });
  }

  Pending start_all_gather(const at::Tensor& mine, const at::Tensor& all) override {
    const std::size_t bytes = mine.nbytes();
    Piece piece =
        piece_of(Step::even(Collective::kAllGather, size(), static_cast<std::int64_t>(bytes)));
    for (std::size_t other = 0; other < piece.to.size(); ++other) {
      piece.to[other] = host_bytes(mine);
      piece.from[other] = mutable_host_bytes(all).subspan(other * bytes, bytes);
    }
    return start(std::move(piece), {mine, all});
  }

  Pending start_all_to_all(const at::Tensor& send, std::span<const std::int64_t> send_counts,
                           const at::Tensor& receive,
                           std::span<const std::int64_t> receive_counts) override {
    Piece piece = piece_of(Step::exchange(send_counts, receive_counts, send.element_size()));
    std::size_t sent = 0, received = 0;
    for (std::size_t other = 0; other < piece.to.size(); ++other) {
      const auto out = static_cast<std::size_t>(piece.step.sent[other]);
      const auto in = static_cast<std::size_t>(piece.step.received[other]);
      piece.to[other] = host_bytes(send).subspan(std::exchange(sent, sent + out), out);
      piece.from[other] =
          mutable_host_bytes(receive).subspan(std::exchange(received, received + in), in);
    }
    return start(std::move(piece), {send, receive});
  }

  Pending start_broadcast(const at::Tensor& tensor, int root) override {
    Piece piece = piece_of(Step::even(Collective::kBroadcast, size(),
                                      static_cast<std::int64_t>(tensor.nbytes()), root));
    if (rank() == root) {
      for (auto& to : piece.to) to = host_bytes(tensor);
    } else {
      piece.from[static_cast<std::size_t>(root)] = mutable_host_bytes(tensor);
    }
    return start(std::move(piece), {tensor});
  }

  void run_barrier() override {
    start(piece_of(Step::even(Collective::kBarrier, size(), 0)), {}).wait();
  }

  std::shared_ptr<World> world_;
  std::int64_t number_ = 0;  ///< of the last collective
  int exceptions_ = std::uncaught_exceptions();
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
      world->fail("rank " + std::to_string(rank) + " failed: " + error.what());
    }
  };
  std::vector<std::jthread> threads;
  for (int rank = 1; rank < size; ++rank) threads.emplace_back(run, rank);
  run(0);
  threads.clear();  // waits
  if (first) std::rethrow_exception(first);
}

}  // namespace olmo::dist
