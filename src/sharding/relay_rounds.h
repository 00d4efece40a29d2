// In which order the ranks go through tensors of which each holds a part.
//
// A *leg* is a rank's part of a tensor. It can begin once the leg before it, on another rank, has
// ended and what was found up to there has arrived. So that a rank seldom waits, all of them go on
// by rounds: in each, a rank does up to a *window* in each of its *lanes*, which work at the same
// time, and first what other ranks wait for. What is found in a round travels while the ranks work
// on the next, and serves in the one after it. When nothing has to travel any more, the rest is one
// last round.
//
// All ranks compute the same rounds from the same numbers, so that nobody has to ask.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace olmo::sharding {

/// Bytes [begin, end) of a tensor.
struct ByteRange {
  std::int64_t begin = 0, end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// Bytes: legs and windows begin at a multiple of it in their tensor. A page of a file.
inline constexpr std::int64_t kLegUnit = 4096;

struct RelayLimits {
  int lanes = 1;                       ///< of each rank
  std::optional<std::int64_t> window;  ///< bytes, a multiple of kLegUnit; else the best
};

/// Bytes of a tensor that a rank goes through at one go.
struct Stretch {
  std::size_t tensor = 0;
  ByteRange range;
};

/// What was found of a tensor goes from one rank to another.
struct Handover {
  std::size_t tensor = 0;
  int from = 0, to = 0;
};

class RelayRounds {
 public:
  /// Of no tensors.
  RelayRounds() = default;
  /// `sizes` (bytes), and which bytes each rank holds: `ranges[rank * sizes.size() + tensor]`. A
  /// tensor lies in parts on several ranks; or it is whole on some, of which the first has it.
  RelayRounds(std::vector<std::int64_t> sizes, const std::vector<ByteRange>& ranges,
              const RelayLimits& limits);

  /// The rank that goes through the end of a tensor.
  [[nodiscard]] int last(std::size_t tensor) const { return legs_[chains_[tensor].back()].rank; }
  /// Whether a rank goes through a part of a tensor.
  [[nodiscard]] bool takes_part(int rank, std::size_t tensor) const;

  struct Round {
    std::vector<Handover> travelling;         ///< while the ranks work
    std::vector<std::vector<Stretch>> lanes;  ///< of the rank that asked
  };
  /// The next round of `rank`, which is always the same. All ranks have the same number of rounds.
  Round next(int rank);
  [[nodiscard]] bool done() const { return left_ == 0; }

 private:
  struct Leg {
    std::size_t tensor = 0;
    int rank = 0;
    std::size_t after = 0;  ///< legs of the tensor that follow
    std::int64_t at = 0, end = 0;
  };
  using Lanes = std::vector<std::vector<Stretch>>;
  /// Legs that can begin or go on, by how much waits for them: (minus `after`, the leg's number).
  using Ready = std::set<std::pair<std::int64_t, std::size_t>>;

  void make_chain(std::size_t tensor, const std::vector<ByteRange>& ranges);
  [[nodiscard]] std::int64_t best_window() const;
  void make_ready(std::size_t leg);
  Lanes work(Ready& ready);
  Lanes rest(Ready& ready);
  std::int64_t go_on(std::size_t leg, std::int64_t most, std::vector<Stretch>& lane);

  std::vector<std::int64_t> sizes_;
  int lanes_ = 1;
  std::int64_t window_ = kLegUnit;
  std::vector<Leg> legs_;
  std::vector<std::vector<std::size_t>> chains_;  ///< of each tensor: its legs, in order
  std::vector<Ready> ready_;                      ///< of each rank
  std::vector<std::size_t> found_, arriving_;     ///< legs that wait for what travels next, and now
  std::size_t left_ = 0;                          ///< legs
  std::size_t handovers_ = 0;                     ///< that are not yet found
};

}  // namespace olmo::sharding
