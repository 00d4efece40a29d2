// A Communicator that notes when its collectives begin and end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dist/communicator.h"

namespace olmo::sharding {

/// Notes "KIND N begins" and "KIND N ends", where N counts the collectives of a kind from 0. Those
/// of the world's parts follow "part P ", where P counts the calls of split() from 0.
class Recording final : public dist::Communicator {
 public:
  Recording(dist::Communicator& ranks, std::vector<std::string>& events)
      : Communicator(ranks.rank(), ranks.size()), ranks_(ranks), events_(events) {}
  Recording(std::unique_ptr<dist::Communicator> part, std::vector<std::string>& events, int number)
      : Communicator(part->rank(), part->size()),
        own_(std::move(part)),
        ranks_(*own_),
        events_(events),
        prefix_("part " + std::to_string(number) + " ") {}

  std::unique_ptr<Communicator> split(int color) override {
    return std::make_unique<Recording>(ranks_.split(color), events_, parts_++);
  }

 private:
  dist::Pending noted(const char* kind, int number, dist::Pending pending) {
    const std::string what = prefix_ + kind + " " + std::to_string(number);
    events_.push_back(what + " begins");
    return dist::Pending([this, what, held = std::make_shared<dist::Pending>(std::move(pending))] {
      held->wait();
      events_.push_back(what + " ends");
    });
  }

  dist::Pending start_all_gather(const at::Tensor& mine, const at::Tensor& all) override {
    return noted("gather", gathers_++, ranks_.all_gather(mine, all));
  }
  dist::Pending start_all_to_all(const at::Tensor& send, std::span<const std::int64_t> send_counts,
                                 const at::Tensor& receive,
                                 std::span<const std::int64_t> receive_counts) override {
    return noted("exchange", exchanges_++,
                 ranks_.all_to_all(send, send_counts, receive, receive_counts));
  }
  dist::Pending start_broadcast(const at::Tensor& tensor, int root) override {
    return ranks_.broadcast(tensor, root);
  }
  void run_barrier() override { ranks_.barrier(); }

  std::unique_ptr<dist::Communicator> own_;
  dist::Communicator& ranks_;
  std::vector<std::string>& events_;
  std::string prefix_;
  int gathers_ = 0, exchanges_ = 0, parts_ = 0;
};

}  // namespace olmo::sharding
