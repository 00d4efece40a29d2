#include "dist/step.h"

#include <numeric>

namespace olmo::dist {
namespace {

/// Ranks below one. More of them make it wait for more, and fewer make more wait in line.
constexpr int kBelow = 16;

/// Of what one rank has for another: 0 for nothing, else any number, but the same each time.
std::uint64_t number_of(int from, int to, std::int64_t bytes) {
  if (bytes == 0) return 0;
  auto x = static_cast<std::uint64_t>(bytes);
  for (const int rank : {from, to}) {  // two steps of SplitMix64 (Steele, Lea and Flood, 2014)
    x += 0x9e3779b97f4a7c15U * (static_cast<std::uint64_t>(rank) + 1);
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    x ^= x >> 31U;
  }
  return x;
}

}  // namespace

std::string to_string(const Announcement& announcement) {
  const auto& [number, kind, root, bytes] = announcement;
  return to_string(Position{number, kind, bytes}) +
         (root < 0 ? "" : " from rank " + std::to_string(root));
}

Step Step::even(Collective kind, int size, std::int64_t bytes, int root) {
  const std::vector<std::int64_t> each(static_cast<std::size_t>(size), bytes);
  return {kind, root, 0, each, each};
}

Step Step::exchange(std::span<const std::int64_t> send_counts,
                    std::span<const std::int64_t> receive_counts, std::int64_t element_size) {
  Step step{Collective::kAllToAll, -1, 0, {}, {}};
  for (const auto count : send_counts) step.sent.push_back(count * element_size);
  for (const auto count : receive_counts) step.received.push_back(count * element_size);
  return step;
}

Announcement Step::to(int rank) const {
  return {number, kind, root, sent.at(static_cast<std::size_t>(rank))};
}

Announcement Step::common() const {
  const bool is_alike = kind != Collective::kAllToAll && !sent.empty();
  return {number, kind, root, is_alike ? sent.front() : 0};
}

std::uint64_t Step::balance(int me) const {
  if (kind != Collective::kAllToAll) return 0;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const int other = static_cast<int>(i);
    sum += number_of(me, other, sent[i]) - number_of(other, me, received[i]);
  }
  return sum;
}

std::optional<OutOfStep> Step::compare(int me, int other, const Announcement& told) const {
  const Announcement expected{number, kind, root, received.at(static_cast<std::size_t>(other))};
  if (told == expected) return std::nullopt;
  return OutOfStep{other, me, told, expected};
}

void Tally::add(int me, int from, const Tally& theirs) {
  balance += theirs.balance;
  if (found) return;
  found = theirs.found;
  if (!found && theirs.mine != mine) found = {from, me, theirs.mine, mine};
}

int rank_above(int rank) { return (rank - 1) / kBelow; }

std::vector<int> ranks_below(int rank, int size) {
  std::vector<int> ranks;
  for (int i = 1; i <= kBelow && rank * kBelow + i < size; ++i) ranks.push_back(rank * kBelow + i);
  return ranks;
}

std::string to_string(const OutOfStep& ranks) {
  return "rank " + std::to_string(ranks.other) + " is out of step with rank " +
         std::to_string(ranks.here) + ": it brings " + to_string(ranks.told) + ", expected " +
         to_string(ranks.expected);
}

std::string to_string(const Step& step) {
  const auto bytes = std::accumulate(step.sent.begin(), step.sent.end(), std::int64_t{0});
  return to_string(Announcement{step.number, step.kind, step.root, bytes});
}

}  // namespace olmo::dist
