// The ranks of one training, and the collectives that move bytes between them.
//
// A collective never adds: the order in which NCCL, RCCL or Gloo would add is theirs, and would
// change with the number of ranks. Sums are made by who receives the terms, in the order of their
// definition.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "core/compute/tensor.h"

namespace olmo::dist {

enum class Collective { kAllGather, kAllToAll, kBroadcast, kBarrier };
/// "all-gather", …
std::string to_string(Collective kind);

/// Which collective a rank has begun last.
struct Position {
  std::int64_t number = 0;  ///< from 1; 0: none yet
  Collective kind = Collective::kBarrier;
  std::int64_t bytes = 0;  ///< that this rank brings to it

  bool operator==(const Position&) const = default;
};
/// "all-gather 57 of 4096 bytes".
std::string to_string(const Position& position);

/// What a rank has handed to the transport so far, and how long it has waited for it.
struct Traffic {
  struct Kind {
    std::int64_t calls = 0;
    std::int64_t bytes = 0;  ///< for other ranks; a byte for three of them counts three times
    double seconds = 0;      ///< within wait(), and within barriers
  };
  std::array<Kind, 4> kinds;  ///< by Collective

  [[nodiscard]] const Kind& of(Collective kind) const {
    return kinds[static_cast<std::size_t>(kind)];
  }
  /// Of several communicators of one rank.
  Traffic& operator+=(const Traffic& other);
};

/// A collective under way. Until wait() has returned, what it sends must not be written, and what
/// it receives must not be read. One that nobody waits for is waited for when it goes.
class Pending {
 public:
  /// `wait` is called once. Empty: there is nothing to wait for.
  explicit Pending(std::function<void()> wait = {}) : wait_(std::move(wait)) {}
  Pending(Pending&& other) noexcept : wait_(std::exchange(other.wait_, {})) {}
  Pending& operator=(Pending&& other) noexcept;
  ~Pending();

  /// Returns when this rank's part is done. Throws Error if a rank has failed; the message names
  /// it.
  void wait();

 private:
  std::function<void()> wait_;
};

/// Asked while a rank waits for others, some times a second: throws if it knows that a rank has
/// failed, is dead or hangs. `trouble` is empty, or what the transport says of a collective that
/// has just failed ("Connection closed by peer [10.0.0.7]:4711"): then the check may take its time
/// to find out which rank is behind it, and the transport's error is thrown if it returns.
using FailureCheck = std::function<void(const std::string& trouble)>;

/// Who looks after the ranks of a communicator.
struct Lookout {
  FailureCheck check = {};
  /// Told of every communicator, those of split() too, by its name: where this rank stands in it.
  /// Told once more, with nothing, before the communicator goes.
  std::function<void(const std::string& name, std::function<Position()>)> follow = {};
};

/// A rank's place among W ranks. Every rank calls the same collectives in the same order, from one
/// thread at a time; what else runs at the same time (a save in the background) has a communicator
/// of its own, from split(). Tensors are contiguous, of any type, of the host's memory; of a
/// communicator between GPUs (dist/gpu_ranks.h) of the device's.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  /// `all` receives the `mine` of every rank, by rank; all are of one size. `mine` may be this
  /// rank's own place in `all`.
  Pending all_gather(const at::Tensor& mine, const at::Tensor& all);
  /// `send` holds what goes to each rank, by rank, `send_counts` elements each; `receive` likewise
  /// what comes from each. A rank's `send_counts[j]` is j's `receive_counts[rank]`; zeros are fine.
  Pending all_to_all(const at::Tensor& send, std::span<const std::int64_t> send_counts,
                     const at::Tensor& receive, std::span<const std::int64_t> receive_counts);
  /// `tensor` of rank `root` is copied into those of all others.
  Pending broadcast(const at::Tensor& tensor, int root);
  /// Returns when every rank has called it.
  void barrier();

  /// The ranks that give the same `color`, in the order of their ranks here, as a world of their
  /// own.
  virtual std::unique_ptr<Communicator> split(int color) = 0;

  /// Its name among those of a rank, the same on all its ranks, and who looks after them.
  [[nodiscard]] virtual std::string name() const { return "ranks"; }
  [[nodiscard]] virtual Lookout lookout() const { return {}; }

  [[nodiscard]] const Traffic& traffic() const { return *traffic_; }

  /// For whoever watches the rank from another thread.
  [[nodiscard]] Position position() const;

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

  /// This rank's place among those that give the same `color`, for split().
  struct Part {
    int rank = 0, size = 0;
  };
  Part part_of(int color);

 private:
  virtual Pending start_all_gather(const at::Tensor& mine, const at::Tensor& all) = 0;
  virtual Pending start_all_to_all(const at::Tensor& send,
                                   std::span<const std::int64_t> send_counts,
                                   const at::Tensor& receive,
                                   std::span<const std::int64_t> receive_counts) = 0;
  virtual Pending start_broadcast(const at::Tensor& tensor, int root) = 0;
  virtual void run_barrier() = 0;
  /// `brought` by this rank; `sent`: once for each rank that they are for.
  void begin(Collective kind, std::int64_t brought, std::int64_t sent);
  Pending timed(Collective kind, Pending pending);

  int rank_, size_;
  std::shared_ptr<Traffic> traffic_ = std::make_shared<Traffic>();  ///< shared with what is pending
  mutable std::mutex mutex_;
  Position position_;  ///< behind the mutex
};

/// A world of one rank: collectives copy, or do nothing.
std::unique_ptr<Communicator> alone();

}  // namespace olmo::dist
