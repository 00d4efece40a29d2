// Tensors of which each rank holds a part, gone through from the first byte to the last, as a hash
// of the whole wants it. No part travels: each rank goes through its own, where it lies, and hands
// what it has found so far, such as a hash that has taken in the bytes up to there, to the rank
// that holds the next part.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "dist/communicator.h"
#include "sharding/relay_rounds.h"

namespace olmo::sharding {

/// Every rank makes one and makes the same calls; it serves once.
class Relay {
 public:
  /// `sizes` (bytes): the same on all ranks. `mine`: what this rank holds of each tensor.
  /// `threads`: that may work here; all ranks go by the fewest.
  Relay(dist::Communicator& ranks, const std::vector<std::int64_t>& sizes,
        std::span<const ByteRange> mine, int threads);

  [[nodiscard]] int ranks() const { return ranks_.size(); }
  /// Whether this rank goes through bytes of a tensor; and through its last ones.
  [[nodiscard]] bool takes_part(std::size_t tensor) const {
    return rounds_.takes_part(ranks_.rank(), tensor);
  }
  [[nodiscard]] bool ends(std::size_t tensor) const {
    return rounds_.last(tensor) == ranks_.rank();
  }
  [[nodiscard]] int last(std::size_t tensor) const { return rounds_.last(tensor); }

  /// Calls `step(stretch, state)` for what this rank holds, of each tensor in the order of its
  /// bytes; from several threads, each with a tensor of its own. `states`, one a tensor, begin
  /// alike on all ranks; that of a tensor is whole afterwards on the rank that ends it.
  ///
  /// What fails on one rank must not stop the others. So where `step` throws, it is not called
  /// again; nor is it on the ranks that would have gone on from there. The error is returned on
  /// this rank alone. Errors of the transport are thrown.
  template <class State, class Step>
  [[nodiscard]] std::exception_ptr run(std::vector<State>& states, const Step& step) {
    static_assert(std::is_trivially_copyable_v<State>);
    return run(std::as_writable_bytes(std::span(states)), sizeof(State),
               [&](const Stretch& stretch) { step(stretch, states[stretch.tensor]); });
  }

 private:
  std::exception_ptr run(std::span<std::byte> states, std::size_t size,
                         const std::function<void(const Stretch&)>& step);
  dist::Pending send(const std::vector<Handover>& handovers, std::span<const std::byte> states,
                     std::size_t size);
  void take(const std::vector<Handover>& handovers, std::span<std::byte> states, std::size_t size);

  dist::Communicator& ranks_;
  int threads_ = 1;
  RelayRounds rounds_;
  std::vector<char> lost_;  ///< by tensor: a rank has failed before what it found was whole
  at::Tensor sent_, received_;
};

}  // namespace olmo::sharding
