// In which order the bytes of whole tensors travel between the ranks that hold parts of them and
// the ranks that own the tensors.
//
// Each tensor is dealt to an *owner*, by sizes, and there to a *lane*. A lane goes through its
// tensors from the first byte to the last, since their SHA-256 knows no other order, a *window* at
// a time: so no rank needs the memory of a whole tensor, and hashing takes as many threads as there
// are lanes.
//
// It happens in rounds, one exchange each, in which every lane goes on by up to a window, and no
// rank sends or receives more than its lanes' windows together. Without this limit all lanes would
// begin with bytes of rank 0, which holds the beginning of most tensors: its network would be what
// all wait for, and its memory too small. With it, lanes that have to wait fall behind; after some
// rounds they stand at different places, and all ranks are busy. All ranks compute the same rounds
// from the same numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "sharding/holdings.h"

namespace olmo::sharding {

enum class Direction {
  kToOwners,   ///< each byte comes from one of its holders
  kToHolders,  ///< each byte goes to all its holders
};

struct RoundLimits {
  int lanes = 2;                   ///< of each rank
  std::int64_t window = 8 << 20U;  ///< bytes, a multiple of kWindowUnit
};

/// Bytes: windows begin at a multiple of it in their tensor (and in the memory of their lane), and
/// all but the last of a tensor end at one. A page of a file.
inline constexpr std::int64_t kWindowUnit = 4096;

/// Bytes of a tensor that travel between its owner and a holder.
struct Segment {
  std::size_t tensor = 0;
  ByteRange range;
  int lane = 0;  ///< of all ranks' lanes; ranks in turn
  int holder = 0;
};

class Rounds {
 public:
  /// `holdings` must outlive it.
  Rounds(const Holdings& holdings, Direction direction, const RoundLimits& limits);

  [[nodiscard]] int owner(std::size_t tensor) const { return owner_of_lane(lane_of_[tensor]); }
  [[nodiscard]] int owner_of_lane(int lane) const { return lane % holdings_.ranks(); }
  /// Nothing of it travels: its owner holds all of it, and nobody else needs any.
  [[nodiscard]] bool stays(std::size_t tensor) const;
  /// Bytes that a rank sends in one round at most, and that it receives.
  [[nodiscard]] std::int64_t limit() const { return limit_; }

  /// The next round: segments by lane, in the order of their bytes. Empty: all has travelled.
  std::vector<Segment> next();

 private:
  struct Lane {
    std::vector<std::size_t> tensors;  ///< those that travel
    std::size_t current = 0;           ///< index into them
    std::vector<Piece> pieces;         ///< of the current one
    std::size_t piece = 0;             ///< the one that holds byte `at`
    std::int64_t at = 0;               ///< the next byte of the current one
  };

  void deal();
  void enter(Lane& lane, int number) const;
  void advance(int number, std::vector<Segment>& round);
  std::int64_t extend(const Lane& lane, int number, std::int64_t most, std::vector<Segment>& round);
  void cut(std::vector<Segment>& round, std::size_t first, std::int64_t end);
  [[nodiscard]] std::int64_t allowance(int owner, const std::vector<int>& holders) const;
  void spend(const Segment& segment, std::int64_t bytes);

  const Holdings& holdings_;
  Direction direction_;
  RoundLimits limits_;
  std::int64_t limit_;
  std::vector<int> lane_of_;  ///< by tensor
  std::vector<Lane> lanes_;
  std::vector<std::int64_t> may_send_, may_receive_;  ///< of each rank, in this round
};

}  // namespace olmo::sharding
