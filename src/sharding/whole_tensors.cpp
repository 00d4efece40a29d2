#include "sharding/whole_tensors.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/error.h"
#include "core/named_tensors.h"
#include "dist/together.h"

namespace olmo::sharding {
namespace {

constexpr auto kPageAlignment = static_cast<std::align_val_t>(kWindowUnit);

/// Calls `work` until it throws once.
class Guarded {
 public:
  explicit Guarded(const std::function<void(const Windows&)>& work) : work_(work) {}
  void operator()(const Windows& windows) {
    if (error_) return;
    try {
      work_(windows);
    } catch (...) {  // the caller's to throw
      error_ = std::current_exception();
    }
  }
  [[nodiscard]] const std::exception_ptr& error() const { return error_; }

 private:
  const std::function<void(const Windows&)>& work_;
  std::exception_ptr error_;
};

/// Where the bytes for (or of) each rank begin, if rank i has counts[i] of them.
std::vector<std::int64_t> begins(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> begins{0};
  for (const auto count : counts) begins.push_back(begins.back() + count);
  return begins;
}

}  // namespace

void WholeTensors::FreePages::operator()(std::byte* memory) const {
  ::operator delete(memory, kPageAlignment);
}

WholeTensors::WholeTensors(dist::Communicator& ranks, std::vector<std::int64_t> sizes,
                           std::span<const ByteRange> mine, Direction direction,
                           const RoundLimits& limits)
    : ranks_(ranks),
      holdings_(ranks, std::move(sizes), mine),
      direction_(direction),
      limits_(limits),
      rounds_(holdings_, direction, limits) {
  bool travels = false;
  for (std::size_t i = 0; i < holdings_.tensors(); ++i) travels = travels || !stays(i);
  if (!travels) return;
  dist::together(ranks, [&] {
    send_ = new_tensor({rounds_.limit()}, at::kByte);
    receive_ = new_tensor({rounds_.limit()}, at::kByte);
    windows_.reset(static_cast<std::byte*>(
        ::operator new(static_cast<std::size_t>(limits.lanes * limits.window), kPageAlignment)));
  });
}

int WholeTensors::sender(const Segment& segment) const {
  return direction_ == Direction::kToOwners ? segment.holder : rounds_.owner_of_lane(segment.lane);
}

int WholeTensors::receiver(const Segment& segment) const {
  return direction_ == Direction::kToOwners ? rounds_.owner_of_lane(segment.lane) : segment.holder;
}

WholeTensors::Placed WholeTensors::next_round() {
  Placed placed{rounds_.next(), Windows(static_cast<std::size_t>(limits_.lanes)), {}};
  placed.at.resize(placed.segments.size());
  for (std::size_t i = 0; i < placed.segments.size(); ++i) {
    const Segment& segment = placed.segments[i];
    if (rounds_.owner_of_lane(segment.lane) != ranks_.rank()) continue;
    const auto slot = static_cast<std::size_t>(segment.lane / ranks_.size());
    auto& windows = placed.windows[slot];
    if (windows.empty() || windows.back().tensor != segment.tensor) {
      std::byte* begin = windows_.get() + slot * static_cast<std::size_t>(limits_.window);
      if (!windows.empty()) {
        const auto used = static_cast<std::size_t>(windows.back().bytes.data() - begin) +
                          windows.back().bytes.size();
        const auto unit = static_cast<std::size_t>(kWindowUnit);
        begin += (used + unit - 1) / unit * unit;
      }
      windows.push_back({segment.tensor, segment.range.begin, {begin, 0}});
    }
    Window& window = windows.back();
    const auto offset = static_cast<std::size_t>(segment.range.begin - window.begin);
    const auto size = static_cast<std::size_t>(segment.range.size());
    placed.at[i] = window.bytes.data() + offset;
    window.bytes = {window.bytes.data(), std::max(window.bytes.size(), offset + size)};
  }
  return placed;
}

template <class Byte>
std::span<Byte> WholeTensors::in_parts(const Segment& segment,
                                       std::span<const std::span<Byte>> parts) const {
  const std::int64_t begin = holdings_.held(ranks_.rank(), segment.tensor).begin;
  return parts[segment.tensor].subspan(static_cast<std::size_t>(segment.range.begin - begin),
                                       static_cast<std::size_t>(segment.range.size()));
}

template <class From>
dist::Pending WholeTensors::send(const std::vector<Segment>& round, const From& from) {
  const auto world = static_cast<std::size_t>(ranks_.size());
  std::vector<std::int64_t> sent(world), received(world);
  for (const Segment& segment : round) {
    if (sender(segment) == ranks_.rank())
      sent[static_cast<std::size_t>(receiver(segment))] += segment.range.size();
    if (receiver(segment) == ranks_.rank())
      received[static_cast<std::size_t>(sender(segment))] += segment.range.size();
  }
  auto at = begins(sent);
  const auto memory = mutable_host_bytes(send_);
  for (std::size_t i = 0; i < round.size(); ++i) {
    if (sender(round[i]) != ranks_.rank()) continue;
    auto& begin = at[static_cast<std::size_t>(receiver(round[i]))];
    std::memcpy(memory.data() + begin, from(i), static_cast<std::size_t>(round[i].range.size()));
    begin += round[i].range.size();
  }
  return ranks_.all_to_all(send_.narrow(0, 0, begins(sent).back()), sent,
                           receive_.narrow(0, 0, begins(received).back()), received);
}

template <class To>
void WholeTensors::take(const std::vector<Segment>& round, const To& to) const {
  std::vector<std::int64_t> received(static_cast<std::size_t>(ranks_.size()));
  for (const Segment& segment : round) {
    if (receiver(segment) == ranks_.rank())
      received[static_cast<std::size_t>(sender(segment))] += segment.range.size();
  }
  auto at = begins(received);
  const auto memory = host_bytes(receive_);
  for (std::size_t i = 0; i < round.size(); ++i) {
    if (receiver(round[i]) != ranks_.rank()) continue;
    auto& begin = at[static_cast<std::size_t>(sender(round[i]))];
    std::memcpy(to(i), memory.data() + begin, static_cast<std::size_t>(round[i].range.size()));
    begin += round[i].range.size();
  }
}

std::exception_ptr WholeTensors::collect(std::span<const std::span<const std::byte>> parts,
                                         const std::function<void(const Windows&)>& use) {
  OLMO_CHECK(direction_ == Direction::kToOwners);
  Guarded guarded(use);
  const auto send_round = [&](const Placed& round) {
    return send(round.segments,
                [&](std::size_t i) { return in_parts(round.segments[i], parts).data(); });
  };
  Placed round = next_round();
  dist::Pending travelling;
  if (!round.segments.empty()) travelling = send_round(round);
  while (!round.segments.empty()) {
    travelling.wait();
    take(round.segments, [&](std::size_t i) { return round.at[i]; });
    Placed following = next_round();
    if (!following.segments.empty()) travelling = send_round(following);
    guarded(round.windows);
    round = std::move(following);
  }
  return guarded.error();
}

std::exception_ptr WholeTensors::hand_out(std::span<const std::span<std::byte>> parts,
                                          const std::function<void(const Windows&)>& fill) {
  OLMO_CHECK(direction_ == Direction::kToHolders);
  Guarded guarded(fill);
  Placed round = next_round();
  if (!round.segments.empty()) guarded(round.windows);
  while (!round.segments.empty()) {
    dist::Pending travelling = send(round.segments, [&](std::size_t i) { return round.at[i]; });
    Placed following = next_round();
    if (!following.segments.empty()) guarded(following.windows);
    travelling.wait();
    take(round.segments, [&](std::size_t i) { return in_parts(round.segments[i], parts).data(); });
    round = std::move(following);
  }
  return guarded.error();
}

}  // namespace olmo::sharding
