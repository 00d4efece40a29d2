#include "dist/gloo_ranks.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "core/process/open_files.h"
#include "core/text/text.h"
#include "dist/address.h"
#include "dist/agreement.h"
#include "dist/c10d.h"
#include "dist/meeting.h"
#include "dist/step.h"
#include "dist/worker.h"

namespace olmo::dist {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
using c10d::ProcessGroupGloo;

/// Our store as c10d wants one, with what Gloo calls while it connects. No `override`: LibTorch 2.6
/// has no clone(), newer ones demand it.
// NOLINTBEGIN(modernize-use-override)
class StoreForGloo : public c10d::Store {
 public:
  StoreForGloo(std::unique_ptr<dist::Store> store, GlooOptions options)
      : c10d::Store(options.limit), store_(std::move(store)), options_(std::move(options)) {}

  using c10d::Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) {
    store_->set(key, {value.begin(), value.end()});
  }
  std::vector<std::uint8_t> get(const std::string& key) {
    const auto value = store_->wait(key, options_.limit, check());
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) { wait(keys, options_.limit); }
  void wait(const std::vector<std::string>& keys, const Milliseconds& limit) {
    for (const auto& key : keys) store_->wait(key, limit, check());
  }
  bool check(const std::vector<std::string>& keys) { return store_->has_all(keys); }
  bool deleteKey(const std::string& key) {
    store_->erase(key);
    return true;
  }
  std::int64_t add(const std::string& /*key*/, std::int64_t /*value*/) {
    throw Error(ErrorKind::kFailure, store_->name() + " does not count");
  }
  std::int64_t getNumKeys() {
    throw Error(ErrorKind::kFailure, store_->name() + " does not count its keys");
  }
  c10::intrusive_ptr<c10d::Store> clone() {
    return c10::make_intrusive<StoreForGloo>(store_->again(), options_);
  }

 private:
  [[nodiscard]] std::function<void()> check() const {
    return [check = options_.check] {
      if (check) check("");
    };
  }

  std::unique_ptr<dist::Store> store_;
  GlooOptions options_;
};
// NOLINTEND(modernize-use-override)

/// A collective, as the worker does it.
struct Operation {
  Step step;
  std::function<void(ProcessGroupGloo&)> data = {};  ///< returns when it is done
};

/// What ranks send to each other one by one.
enum class Message { kTally, kData };

int tag_of(std::int64_t collective, Message message) {
  return static_cast<int>((2 * collective + static_cast<int>(message)) & INT_MAX);
}

at::Tensor bytes_of(const at::Tensor& tensor) { return tensor.view({-1}).view(at::kByte); }

std::int64_t bytes_in(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

/// Sends `out` of each rank to it, and receives `in` of each from it; what is empty does not
/// travel. Gloo's own all-gather goes around a ring, which was several times slower on a loopback
/// (why was not found), and its all-to-all sends what is empty, too.
void exchange(ProcessGroupGloo& group, int me, int tag, std::span<const at::Tensor> out,
              std::span<const at::Tensor> in) {
  Works works;
  const int size = static_cast<int>(in.size());
  const auto at = [](int rank) { return static_cast<std::size_t>(rank); };
  for (int i = 1; i < size; ++i) {
    const int from = (me + size - i) % size;
    std::vector<at::Tensor> theirs{in[at(from)]};
    if (theirs[0].nbytes() > 0) works.push_back(group.recv(theirs, from, tag));
  }
  for (int i = 1; i < size; ++i) {
    const int to = (me + i) % size;
    std::vector<at::Tensor> mine{out[at(to)]};
    if (mine[0].nbytes() > 0) works.push_back(group.send(mine, to, tag));
  }
  const auto from = host_bytes(out[at(me)]);
  const auto to = mutable_host_bytes(in[at(me)]);
  if (to.data() != from.data()) std::ranges::copy(from, to.begin());
  for (const auto& work : works) work->wait();
}

/// The connections of a world. The communicator, its worker and its collectives share it.
class World {
 public:
  World(c10::intrusive_ptr<ProcessGroupGloo> group, std::string name, int rank, int size,
        GlooOptions options)
      : group_(std::move(group)),
        name_(std::move(name)),
        rank_(rank),
        size_(size),
        options_(std::move(options)) {}
  ~World() {
    // c10d's destructor waits for the collectives under way.
    if (broken_) static_cast<void>(group_.release());
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const GlooOptions& options() const { return options_; }
  [[nodiscard]] bool broken() const { return broken_; }

  /// In the worker's thread.
  void run(const Operation& operation) {
    if (broken_)
      throw Error(ErrorKind::kFailure, in_world() + ": an earlier collective has failed");
    agree(operation.step);
    if (operation.data) operation.data(*group_);
  }

  /// Until the collective is done, a rank is known to have failed, or the limit has passed.
  void wait(const std::shared_future<void>& done, const std::string& what) {
    constexpr Milliseconds kBetweenChecks(100);
    const auto begin = Clock::now();
    try {
      while (done.wait_for(kBetweenChecks) != std::future_status::ready) {
        if (options_.check) options_.check("");
        if (Clock::now() - begin > options_.limit) {
          const std::string trouble = in_world() + ": " + what + " has waited " +
                                      seconds_text(options_.limit) + " for another rank";
          if (options_.check) options_.check(trouble);
          throw Error(ErrorKind::kFailure, trouble);
        }
      }
      done.get();
    } catch (const Error&) {
      broken_ = true;
      throw;
    } catch (const std::exception& error) {
      broken_ = true;
      const std::string trouble = reason(error);
      if (options_.check) options_.check(trouble);
      throw Error(ErrorKind::kFailure, in_world() + ": " + what + ": " + trouble);
    }
  }

 private:
  [[nodiscard]] std::string in_world() const {
    return "rank " + std::to_string(rank_) + " in `" + name_ + "`";
  }

  /// Throws, on every rank the same, if one of them is about to do something else.
  void agree(const Step& step) {
    const Tally mine{.mine = step.common(), .balance = step.balance(rank_)};
    Tally all = tally_of_all(mine, step.number);
    if (!all.found && all.balance != 0) {
      Tally again = mine;
      again.found = compare_sizes(step);
      all = tally_of_all(again, step.number);
    }
    if (all.found) throw Error(ErrorKind::kFailure, to_string(*all.found));
  }

  Tally tally_of_all(Tally tally, std::int64_t number) {
    const int tag = tag_of(number, Message::kTally);
    const auto below = ranks_below(rank_, size_);
    for (const int rank : below) tally.add(rank_, rank, receive_tally(rank, tag));
    Works sent;
    if (rank_ != 0) {
      sent.push_back(send_tally(tally, rank_above(rank_), tag));
      tally = receive_tally(rank_above(rank_), tag);
    }
    for (const int rank : below) sent.push_back(send_tally(tally, rank, tag));
    for (const auto& work : sent) work->wait();
    return tally;
  }

  c10::intrusive_ptr<c10d::Work> send_tally(const Tally& tally, int to, int tag) {
    static_assert(std::is_trivially_copyable_v<Tally>);
    std::vector<at::Tensor> bytes{new_tensor({sizeof tally}, at::kByte)};
    std::memcpy(mutable_host_bytes(bytes[0]).data(), &tally, sizeof tally);
    return group_->send(bytes, to, tag);
  }

  Tally receive_tally(int from, int tag) {
    std::vector<at::Tensor> bytes{new_tensor({sizeof(Tally)}, at::kByte)};
    group_->recv(bytes, from, tag)->wait();
    Tally tally;
    std::memcpy(&tally, host_bytes(bytes[0]).data(), sizeof tally);
    return tally;
  }

  /// Whose sizes are not what this rank expects.
  std::optional<OutOfStep> compare_sizes(const Step& step) {
    static_assert(std::is_trivially_copyable_v<Announcement>);
    const auto all = size_ * static_cast<std::int64_t>(sizeof(Announcement));
    at::Tensor mine = new_tensor({all}, at::kByte), theirs = new_tensor({all}, at::kByte);
    const auto place = [](const at::Tensor& tensor, int rank) {
      return mutable_host_bytes(tensor).data() +
             static_cast<std::size_t>(rank) * sizeof(Announcement);
    };
    for (int rank = 0; rank < size_; ++rank) {
      const Announcement told = step.to(rank);
      std::memcpy(place(mine, rank), &told, sizeof told);
    }
    std::vector<std::int64_t> even;
    group_->alltoall_base(theirs, mine, even, even)->wait();
    for (int rank = 0; rank < size_; ++rank) {
      Announcement told;
      std::memcpy(&told, place(theirs, rank), sizeof told);
      if (auto differs = step.compare(rank_, rank, told)) return differs;
    }
    return std::nullopt;
  }

  c10::intrusive_ptr<ProcessGroupGloo> group_;
  std::string name_;
  int rank_, size_;
  GlooOptions options_;
  std::atomic<bool> broken_ = false;
};

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(int rank, int size, std::unique_ptr<Store> store, std::shared_ptr<World> world)
      : Communicator(rank, size), store_(std::move(store)), world_(std::move(world)) {
    follow([this] { return position(); });
  }

  ~GlooCommunicator() override {
    follow({});
    try {
      if (last_.valid()) world_->wait(last_, "the last collective");
    } catch (const std::exception&) {  // whoever could have handled it did not wait
    }
    if (world_->broken()) worker_.abandon();
  }

  std::unique_ptr<Communicator> split(int color) override {
    const Part part = part_of(color);
    if (part.size == 1) return alone();
    return join_gloo(*store_,
                     world_->name() + "/" + std::to_string(number_) + "." + std::to_string(color),
                     part.rank, part.size, world_->options());
  }

  [[nodiscard]] std::string name() const override { return world_->name(); }
  [[nodiscard]] Lookout lookout() const override { return world_->options(); }

 private:
  void follow(std::function<Position()> position) {
    if (world_->options().follow) world_->options().follow(world_->name(), std::move(position));
  }

  Pending start(Operation operation) {
    operation.step.number = ++number_;
    const auto what = to_string(operation.step);
    last_ =
        worker_.run([world = world_, operation = std::move(operation)] { world->run(operation); })
            .share();
    return Pending([world = world_, done = last_, what] { world->wait(done, what); });
  }

  Pending start_all_gather(const at::Tensor& mine, const at::Tensor& all) override {
    Operation operation{Step::even(Collective::kAllGather, size(), bytes_in(mine))};
    if (bytes_in(mine) > 0) {
      const auto count = static_cast<std::size_t>(size());
      operation.data = exchanging(std::vector(count, bytes_of(mine)), bytes_of(all).chunk(size()));
    }
    return start(std::move(operation));
  }

  Pending start_all_to_all(const at::Tensor& send, std::span<const std::int64_t> send_counts,
                           const at::Tensor& receive,
                           std::span<const std::int64_t> receive_counts) override {
    Operation operation{Step::exchange(send_counts, receive_counts, send.element_size())};
    operation.data = exchanging(bytes_of(send).split_with_sizes(operation.step.sent),
                                bytes_of(receive).split_with_sizes(operation.step.received));
    return start(std::move(operation));
  }

  /// The data of the collective that is started next.
  std::function<void(ProcessGroupGloo&)> exchanging(std::vector<at::Tensor> out,
                                                    std::vector<at::Tensor> in) {
    return [out = std::move(out), in = std::move(in), me = rank(),
            tag = tag_of(number_ + 1, Message::kData)](ProcessGroupGloo& group) {
      exchange(group, me, tag, out, in);
    };
  }

  Pending start_broadcast(const at::Tensor& tensor, int root) override {
    Operation operation{Step::even(Collective::kBroadcast, size(), bytes_in(tensor), root)};
    if (bytes_in(tensor) > 0) {
      operation.data = [of = std::vector{bytes_of(tensor)}, root](ProcessGroupGloo& group) mutable {
        c10d::BroadcastOptions from;
        from.rootRank = root;
        group.broadcast(of, from)->wait();
      };
    }
    return start(std::move(operation));
  }

  void run_barrier() override {
    start(Operation{Step::even(Collective::kBarrier, size(), 0)}).wait();
  }

  std::unique_ptr<Store> store_;
  std::shared_ptr<World> world_;
  std::int64_t number_ = 0;  ///< of the last collective
  std::shared_future<void> last_;
  Worker worker_;
};

/// Returns when all ranks have come.
void require_all(Store& store, int rank, int size, const GlooOptions& options) {
  const auto check = [&] {
    if (options.check) options.check("");
  };
  const auto missing = meet(store, rank, size, options.limit, check);
  if (missing.empty()) return;
  throw Error(ErrorKind::kFailure, store.name() + ": " + rank_list(missing) + " of " +
                                       std::to_string(size) + " have not come within " +
                                       seconds_text(options.limit));
}

c10::intrusive_ptr<ProcessGroupGloo> connect(const Store& store, int rank, int size,
                                             const GlooOptions& options) {
  const auto gloo = ProcessGroupGloo::Options::create(options.limit);
  gloo->threads = 1;  // our worker starts one collective after another
  if (!options.address.empty()) {
    gloo->devices.push_back(ProcessGroupGloo::createDeviceForHostname(options.address));
  } else {
    for (const auto& name : named_interfaces())
      gloo->devices.push_back(ProcessGroupGloo::createDeviceForInterface(name));
  }
  return c10::make_intrusive<ProcessGroupGloo>(
      c10::make_intrusive<StoreForGloo>(store.again(), options), rank, size, gloo);
}

}  // namespace

std::unique_ptr<Communicator> join_gloo(const Store& store, const std::string& name, int rank,
                                        int size, GlooOptions options) {
  prepare_c10d();
  const auto place = with_prefix(store, name);
  // Gloo ends the process where it gets none: one for each other rank, and a few of its own.
  constexpr int kOwn = 32;
  make_room_for_files(size + kOwn, "the connections of " + std::to_string(size) + " ranks");
  require_all(*place, rank, size, options);
  try {
    auto group = connect(*with_prefix(*place, "gloo"), rank, size, options);
    return std::make_unique<GlooCommunicator>(
        rank, size, store.again(),
        std::make_shared<World>(std::move(group), name, rank, size, std::move(options)));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorKind::kFailure, "cannot connect with the other ranks: " + reason(error));
  }
}

}  // namespace olmo::dist
