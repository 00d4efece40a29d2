// A rank that fails in the midst of its collectives.
#pragma once

#include <memory>
#include <span>

#include "core/error.h"
#include "dist/communicator.h"

namespace olmo::dist {

/// A rank's communicator that dies, without a word to the others, at its n-th collective; or, if
/// `in_parts`, at the n-th of each part that it is split into.
class Dying final : public Communicator {
 public:
  Dying(std::unique_ptr<Communicator> ranks, int at, bool in_parts = false)
      : Communicator(ranks->rank(), ranks->size()),
        ranks_(std::move(ranks)),
        at_(at),
        in_parts_(in_parts) {}
  std::unique_ptr<Communicator> split(int color) override {
    auto part = ranks_->split(color);
    if (!in_parts_) return part;
    return std::make_unique<Dying>(std::move(part), at_);
  }

 private:
  void live() {
    if (!in_parts_ && ++begun_ == at_) throw Error(ErrorKind::kFailure, "killed");
  }
  Pending start_all_gather(const at::Tensor& mine, const at::Tensor& all) override {
    live();
    return ranks_->all_gather(mine, all);
  }
  Pending start_all_to_all(const at::Tensor& send, std::span<const std::int64_t> counts,
                           const at::Tensor& receive,
                           std::span<const std::int64_t> receive_counts) override {
    live();
    return ranks_->all_to_all(send, counts, receive, receive_counts);
  }
  Pending start_broadcast(const at::Tensor& tensor, int root) override {
    live();
    return ranks_->broadcast(tensor, root);
  }
  void run_barrier() override {
    live();
    ranks_->barrier();
  }

  std::unique_ptr<Communicator> ranks_;
  int at_;
  bool in_parts_;
  int begun_ = 0;
};

}  // namespace olmo::dist
