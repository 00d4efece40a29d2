#include "dist/communicator.h"

#include <chrono>
#include <exception>
#include <numeric>

#include "core/clock.h"
#include "core/compute/named_tensors.h"
#include "core/error.h"

namespace olmo::dist {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t sum_of(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

class Alone final : public Communicator {
 public:
  Alone() : Communicator(0, 1) {}
  std::unique_ptr<Communicator> split(int /*color*/) override { return alone(); }

 private:
  static Pending copy(const at::Tensor& from, const at::Tensor& to) {
    if (!to.is_same(from)) to.copy_(from);
    return Pending();
  }
  Pending start_all_gather(const at::Tensor& mine, const at::Tensor& all) override {
    return copy(mine.view({-1}), all.view({-1}));
  }
  Pending start_all_to_all(const at::Tensor& send, std::span<const std::int64_t> /*send_counts*/,
                           const at::Tensor& receive,
                           std::span<const std::int64_t> /*receive_counts*/) override {
    return copy(send.view({-1}), receive.view({-1}));
  }
  Pending start_broadcast(const at::Tensor& /*tensor*/, int /*root*/) override { return Pending(); }
  void run_barrier() override {}
};

}  // namespace

std::string to_string(Collective kind) {
  constexpr std::array<const char*, 4> kNames = {"all-gather", "all-to-all", "broadcast",
                                                 "barrier"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string to_string(const Position& position) {
  return to_string(position.kind) + " " + std::to_string(position.number) + " of " +
         std::to_string(position.bytes) + " bytes";
}

Pending& Pending::operator=(Pending&& other) noexcept {
  std::swap(wait_, other.wait_);
  return *this;
}

Pending::~Pending() {
  try {
    wait();
  } catch (const std::exception&) {  // whoever could have handled it did not wait
  }
}

void Pending::wait() {
  if (const auto wait = std::exchange(wait_, {})) wait();
}

Traffic& Traffic::operator+=(const Traffic& other) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].calls += other.kinds[i].calls;
    kinds[i].bytes += other.kinds[i].bytes;
    kinds[i].seconds += other.kinds[i].seconds;
  }
  return *this;
}

void Communicator::begin(Collective kind, std::int64_t brought, std::int64_t sent) {
  auto& entry = traffic_->kinds[static_cast<std::size_t>(kind)];
  entry.calls += 1;
  entry.bytes += sent;
  const std::lock_guard lock(mutex_);
  position_ = {position_.number + 1, kind, brought};
}

Position Communicator::position() const {
  const std::lock_guard lock(mutex_);
  return position_;
}

Communicator::Part Communicator::part_of(int color) {
  const at::Tensor mine = new_tensor({1}, at::kInt), all = new_tensor({size_}, at::kInt);
  mutable_host_span<std::int32_t>(mine).front() = color;
  start_all_gather(mine, all).wait();
  Part part;
  const auto colors = host_span<std::int32_t>(all);
  for (int rank = 0; rank < size_; ++rank) {
    if (colors[static_cast<std::size_t>(rank)] != color) continue;
    part.size += 1;
    if (rank < rank_) part.rank += 1;
  }
  return part;
}

Pending Communicator::timed(Collective kind, Pending pending) {
  if (size_ == 1) return pending;  // nothing to wait for
  const auto inner = std::make_shared<Pending>(std::move(pending));
  return Pending([inner, kind, traffic = traffic_] {
    const auto start = Clock::now();
    inner->wait();
    traffic->kinds[static_cast<std::size_t>(kind)].seconds += seconds_since(start);
  });
}

Pending Communicator::all_gather(const at::Tensor& mine, const at::Tensor& all) {
  OLMO_CHECK(mine.is_contiguous() && all.is_contiguous());
  OLMO_CHECK(mine.scalar_type() == all.scalar_type() && all.numel() == size_ * mine.numel());
  const auto bytes = static_cast<std::int64_t>(mine.nbytes());
  begin(Collective::kAllGather, bytes, (size_ - 1) * bytes);
  return timed(Collective::kAllGather, start_all_gather(mine, all));
}

Pending Communicator::all_to_all(const at::Tensor& send, std::span<const std::int64_t> send_counts,
                                 const at::Tensor& receive,
                                 std::span<const std::int64_t> receive_counts) {
  OLMO_CHECK(send.is_contiguous() && receive.is_contiguous());
  OLMO_CHECK(send.scalar_type() == receive.scalar_type());
  OLMO_CHECK(std::ssize(send_counts) == size_ && std::ssize(receive_counts) == size_);
  OLMO_CHECK(send.numel() == sum_of(send_counts) && receive.numel() == sum_of(receive_counts));
  const auto kept = send_counts[static_cast<std::size_t>(rank_)];
  const auto element = static_cast<std::int64_t>(send.element_size());
  begin(Collective::kAllToAll, send.numel() * element, (send.numel() - kept) * element);
  return timed(Collective::kAllToAll, start_all_to_all(send, send_counts, receive, receive_counts));
}

Pending Communicator::broadcast(const at::Tensor& tensor, int root) {
  OLMO_CHECK(tensor.is_contiguous() && root >= 0 && root < size_);
  const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
  begin(Collective::kBroadcast, bytes, rank_ == root ? (size_ - 1) * bytes : 0);
  return timed(Collective::kBroadcast, start_broadcast(tensor, root));
}

void Communicator::barrier() {
  begin(Collective::kBarrier, 0, 0);
  const auto start = Clock::now();
  run_barrier();
  traffic_->kinds[static_cast<std::size_t>(Collective::kBarrier)].seconds += seconds_since(start);
}

std::unique_ptr<Communicator> alone() { return std::make_unique<Alone>(); }

}  // namespace olmo::dist
