// What a rank is about to do, for comparison with what the others are: all ranks call the same
// collectives in the same order, and one that does not is named instead of being misunderstood.
#pragma once

#include <cstdint>
#include <optional>
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

/// `other` brings something else than the rank `here` expects.
struct OutOfStep {
  int other = 0, here = 0;
  Announcement told, expected;
};
/// "rank 1 is out of step with rank 0: it brings …, expected …"
std::string to_string(const OutOfStep& ranks);

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
  /// What all ranks bring alike: all of it, but for the sizes of an all-to-all.
  [[nodiscard]] Announcement common() const;
  /// A number for the sizes of an all-to-all: those of all ranks add up to 0, in 64 bits, if each
  /// rank sends what the other expects.
  [[nodiscard]] std::uint64_t balance(int me) const;
  /// Nothing, if this rank, `me`, expects what `other` has told.
  [[nodiscard]] std::optional<OutOfStep> compare(int me, int other, const Announcement& told) const;
};
/// "broadcast 12 of 4096 bytes from rank 0": all that the rank brings.
std::string to_string(const Step& step);

/// What is known of a rank and of those below it in a tree of all, before a collective. Each tells
/// it to the rank above it, and the first one tells what it is of all: two messages a rank. With
/// one from each rank to each other, a thousand would send a million before every collective.
struct Tally {
  Announcement mine = {};
  std::uint64_t balance = 0;  ///< of all of them
  std::optional<OutOfStep> found = {};

  /// Rank `from`, below this rank, `me`, has told what is known there.
  void add(int me, int from, const Tally& theirs);
};
/// The tree: rank 0 is above all.
int rank_above(int rank);
std::vector<int> ranks_below(int rank, int size);

}  // namespace olmo::dist
