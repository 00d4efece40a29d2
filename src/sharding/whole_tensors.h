// Tensors of which every rank holds parts, whole at one rank each: collected from their holders, or
// handed out to them, window by window (sharding/rounds.h).
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "dist/communicator.h"
#include "sharding/rounds.h"

namespace olmo::sharding {

/// Bytes of a tensor at its owner, from byte `begin`. The memory begins at a page.
struct Window {
  std::size_t tensor = 0;
  std::int64_t begin = 0;
  std::span<std::byte> bytes;
};

/// Those of a round, by lane of this rank. A lane's are in the order of the tensors' bytes, and
/// belong to one thread at a time.
using Windows = std::vector<std::vector<Window>>;

/// Every rank makes one and makes the same calls; it serves once. Holds three times `limits.lanes`
/// windows of memory.
class WholeTensors {
 public:
  /// `sizes` (bytes): the same on all ranks. `mine`: what this rank holds of each tensor. Throws on
  /// all ranks alike if one has no memory for it.
  WholeTensors(dist::Communicator& ranks, std::vector<std::int64_t> sizes,
               std::span<const ByteRange> mine, Direction direction,
               const RoundLimits& limits = {});

  [[nodiscard]] int owner(std::size_t tensor) const { return rounds_.owner(tensor); }
  [[nodiscard]] bool is_mine(std::size_t tensor) const { return owner(tensor) == ranks_.rank(); }
  /// It is no part of what follows: its owner holds all of it, and nobody else needs any.
  [[nodiscard]] bool stays(std::size_t tensor) const { return rounds_.stays(tensor); }

  // What fails on one rank must not stop the exchange of the others. So where `use` or `fill`
  // throws, it is not called again, and its error is returned at the end. Errors of the transport
  // are thrown.

  /// Calls `use` with the windows of this rank's own tensors, while the next ones travel. `parts`:
  /// the bytes that this rank holds of each tensor.
  [[nodiscard]] std::exception_ptr collect(std::span<const std::span<const std::byte>> parts,
                                           const std::function<void(const Windows&)>& use);
  /// Calls `fill` to write windows of this rank's own tensors, and fills `parts` from all ranks'.
  /// After an error on any rank, what they hold is not worth anything.
  [[nodiscard]] std::exception_ptr hand_out(std::span<const std::span<std::byte>> parts,
                                            const std::function<void(const Windows&)>& fill);

 private:
  struct FreePages {
    void operator()(std::byte* memory) const;
  };

  /// A round in this rank's memory.
  struct Placed {
    std::vector<Segment> segments;
    Windows windows;
    std::vector<std::byte*> at;  ///< of each segment whose tensor is this rank's own
  };

  [[nodiscard]] int sender(const Segment& segment) const;
  [[nodiscard]] int receiver(const Segment& segment) const;
  [[nodiscard]] Placed next_round();
  /// The bytes of a segment in `parts`, the memory of what this rank holds.
  template <class Byte>
  std::span<Byte> in_parts(const Segment& segment, std::span<const std::span<Byte>> parts) const;
  /// Copies what this rank sends, from where `from(i)` says that segment i lies, and sends it.
  template <class From>
  dist::Pending send(const std::vector<Segment>& round, const From& from);
  /// Copies what this rank has received to where `to(i)` says.
  template <class To>
  void take(const std::vector<Segment>& round, const To& to) const;

  dist::Communicator& ranks_;
  Holdings holdings_;
  Direction direction_;
  RoundLimits limits_;
  Rounds rounds_;
  at::Tensor send_, receive_;
  std::unique_ptr<std::byte, FreePages> windows_;
};

}  // namespace olmo::sharding
