// What a rank is about to do, for comparison with what the others are: all ranks call the same
// collectives in the same order, and one that does not is named instead of being misunderstood.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dist/communicator.h"

namespace olmo::dist {

/// What one rank tells another.
struct Announcement {
  std::int64_t number = 0;  ///< of the collective, from 1
  Collective kind = Collective::kBarrier;
  int root = -1;           ///< of a broadcast
  std::int64_t bytes = 0;  ///< that the one has for the other; of a broadcast the root's

  bool operator==(const Announcement&) const = default;
};
/// "broadcast 12 of 4096 bytes from rank 0".
std::string to_string(const Announcement& announcement);

/// A collective, as one rank sees it.
struct Step {
  Collective kind = Collective::kBarrier;
  int root = -1;
  std::int64_t number = 0;
  std::vector<std::int64_t> sent, received;  ///< bytes, by rank

  /// Every rank has `bytes` for every other.
  static Step even(Collective kind, int size, std::int64_t bytes, int root = -1);
  static Step exchange(std::span<const std::int64_t> send_counts,
                       std::span<const std::int64_t> receive_counts, std::int64_t element_size);

  [[nodiscard]] Announcement to(int rank) const;
  /// Throws Error(kFailure) that names `other` unless this rank, `me`, expects what it has told.
  void compare(int me, int other, const Announcement& told) const;
};
/// "broadcast 12 of 4096 bytes from rank 0": all that the rank brings.
std::string to_string(const Step& step);

}  // namespace olmo::dist
