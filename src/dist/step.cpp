#include "dist/step.h"

#include <numeric>

#include "core/error.h"

namespace olmo::dist {

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

void Step::compare(int me, int other, const Announcement& told) const {
  const Announcement expected{number, kind, root, received.at(static_cast<std::size_t>(other))};
  if (told == expected) return;
  throw Error(ErrorKind::kFailure, "rank " + std::to_string(other) + " is out of step with rank " +
                                       std::to_string(me) + ": it brings " + to_string(told) +
                                       ", expected " + to_string(expected));
}

std::string to_string(const Step& step) {
  const auto bytes = std::accumulate(step.sent.begin(), step.sent.end(), std::int64_t{0});
  return to_string(Announcement{step.number, step.kind, step.root, bytes});
}

}  // namespace olmo::dist
