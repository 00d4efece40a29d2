#include "sharding/relay_rounds.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"

namespace olmo::sharding {

RelayRounds::RelayRounds(std::vector<std::int64_t> sizes, const std::vector<ByteRange>& ranges,
                         const RelayLimits& limits)
    : sizes_(std::move(sizes)), lanes_(limits.lanes), chains_(sizes_.size()) {
  if (sizes_.empty()) return;
  OLMO_CHECK(ranges.size() % sizes_.size() == 0);
  ready_.resize(ranges.size() / sizes_.size());
  for (std::size_t tensor = 0; tensor < sizes_.size(); ++tensor) make_chain(tensor, ranges);
  left_ = legs_.size();
  window_ = limits.window.value_or(best_window());
  OLMO_CHECK(lanes_ > 0 && window_ >= kLegUnit && window_ % kLegUnit == 0);
}

void RelayRounds::make_chain(std::size_t tensor, const std::vector<ByteRange>& ranges) {
  std::vector<Leg> chain;
  for (std::size_t rank = 0; rank < ready_.size(); ++rank) {
    const ByteRange& held = ranges[rank * sizes_.size() + tensor];
    const Leg leg{tensor, static_cast<int>(rank), 0, held.begin, held.end};
    if (held.size() == sizes_[tensor]) {
      chain = {leg};
      break;
    }
    if (held.size() > 0) chain.push_back(leg);
  }
  std::ranges::sort(chain, {}, &Leg::at);
  OLMO_CHECK(!chain.empty());
  std::int64_t end = 0;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    OLMO_CHECK(chain[i].at == end && end % kLegUnit == 0);
    end = chain[i].end;
    chain[i].after = chain.size() - 1 - i;
    chains_[tensor].push_back(legs_.size());
    legs_.push_back(chain[i]);
  }
  OLMO_CHECK(end == sizes_[tensor]);
  handovers_ += chain.size() - 1;
  make_ready(chains_[tensor].front());
}

/// Long rounds keep the ranks at the end of a chain from beginning, short ones make all wait for
/// the network. A lane with n bytes takes n/w rounds for them, and waits for two at each of h
/// handovers; a round takes the time of its window w, and of t bytes more while something travels.
/// The product, (n/w + 2h)·(w + t), is least at w = √(nt/2h).
std::int64_t RelayRounds::best_window() const {
  constexpr double kTravel = 32 << 20U;  // hashed in the 20 ms that it takes between busy ranks
  std::vector<std::int64_t> loads(ready_.size());
  std::size_t handovers = 1;
  for (const Leg& leg : legs_) {
    loads[static_cast<std::size_t>(leg.rank)] += leg.end - leg.at;
    handovers = std::max(handovers, leg.after);
  }
  const auto bytes = static_cast<double>(std::ranges::max(loads)) / lanes_;
  const double best = std::sqrt(bytes * kTravel / (2 * static_cast<double>(handovers)));
  return std::max<std::int64_t>(static_cast<std::int64_t>(best) / kLegUnit, 1) * kLegUnit;
}

void RelayRounds::make_ready(std::size_t leg) {
  ready_[static_cast<std::size_t>(legs_[leg].rank)].emplace(
      -static_cast<std::int64_t>(legs_[leg].after), leg);
}

bool RelayRounds::takes_part(int rank, std::size_t tensor) const {
  return std::ranges::any_of(chains_[tensor],
                             [&](std::size_t leg) { return legs_[leg].rank == rank; });
}

RelayRounds::Round RelayRounds::next(int rank) {
  for (const std::size_t leg : std::exchange(arriving_, std::exchange(found_, {}))) make_ready(leg);
  Round round;
  for (const std::size_t leg : arriving_) {
    round.travelling.push_back({legs_[leg].tensor, legs_[leg - 1].rank, legs_[leg].rank});
  }
  const bool is_last = handovers_ == 0 && arriving_.empty();
  for (std::size_t each = 0; each < ready_.size(); ++each) {
    auto lanes = is_last ? rest(ready_[each]) : work(ready_[each]);
    if (static_cast<int>(each) == rank) round.lanes = std::move(lanes);
  }
  return round;
}

RelayRounds::Lanes RelayRounds::work(Ready& ready) {
  Lanes lanes;
  std::vector<Ready::value_type> begun;
  while (!ready.empty() && static_cast<int>(lanes.size()) < lanes_) {
    auto& lane = lanes.emplace_back();
    for (std::int64_t room = window_; room > 0 && !ready.empty();) {
      const auto next = *ready.begin();
      ready.erase(ready.begin());
      const Leg& leg = legs_[next.second];
      room -= go_on(next.second, room, lane);
      room = room / kLegUnit * kLegUnit;
      if (leg.at == leg.end) continue;
      begun.push_back(next);
      break;
    }
  }
  ready.insert(begun.begin(), begun.end());
  return lanes;
}

/// A lane for each leg, so that whatever threads there are take one after another.
RelayRounds::Lanes RelayRounds::rest(Ready& ready) {
  Lanes lanes;
  for (const auto& [after, leg] : std::exchange(ready, {}))
    go_on(leg, legs_[leg].end - legs_[leg].at, lanes.emplace_back());
  std::ranges::stable_sort(lanes, std::greater<>(),
                           [](const auto& lane) { return lane.front().range.size(); });
  return lanes;
}

/// Returns by how many bytes.
std::int64_t RelayRounds::go_on(std::size_t number, std::int64_t most, std::vector<Stretch>& lane) {
  Leg& leg = legs_[number];
  const std::int64_t size = std::min(most, leg.end - leg.at);
  lane.push_back({leg.tensor, {leg.at, leg.at + size}});
  leg.at += size;
  if (leg.at < leg.end) return size;
  --left_;
  if (leg.after > 0) {
    found_.push_back(number + 1);
    --handovers_;
  }
  return size;
}

}  // namespace olmo::sharding
