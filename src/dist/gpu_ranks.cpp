#include "dist/gpu_ranks.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "core/compute/gpu_libraries.h"
#include "core/error.h"
#include "core/process_identity.h"
#include "dist/agreement.h"
#include "dist/exchange.h"
#include "dist/together.h"
#include "dist/worker.h"

namespace olmo::dist {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBetweenLooks(100);

GpuCollectives open_on_all(Communicator& host, const Gpu& gpu) {
  GpuCollectives library;
  together(host, [&] { library = open_gpu_collectives(gpu.device(), gpu.folder()); });
  return library;
}

/// A communicator of the library's, which is used by one thread and watched by another.
class Link {
 public:
  Link(Communicator& host, std::shared_ptr<Gpu> gpu, GpuCollectives library,
       std::shared_ptr<GpuSideQueue> side)
      : host_(host),
        lookout_(host.lookout()),
        gpu_(std::move(gpu)),
        library_(std::move(library)),
        side_(std::move(side)) {
    GpuCollectives::Id id{};
    decide(host, [&] { require(library_.make_id(&id), "it makes no place to meet"); });
    join(broadcast_value(host, id, 0));
    gpu_->after_waits(this, [this] { throw_if_given_up(); });
    thread_ = std::thread([this] { watch(); });
  }

  ~Link() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
    gpu_->after_waits(this, {});
    if (failure_) return;  // given up
    // Others may never come to what is queued here when an error ends this rank.
    static_cast<void>(std::uncaught_exceptions() > 0 ? library_.abort(communicator_)
                                                     : library_.leave(communicator_));
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] const GpuCollectives& library() const { return library_; }
  [[nodiscard]] const std::shared_ptr<Gpu>& gpu() const { return gpu_; }
  /// One for all communicators of a rank: on every rank they work in the order of the program.
  [[nodiscard]] const std::shared_ptr<GpuSideQueue>& side() const { return side_; }

  void throw_if_given_up() {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  /// Queues what `work(communicator, stream)` does, which returns the library's code.
  template <class Work>
  Pending queue(const std::string& what, const Work& work) {
    gpu_->use();
    int code = 0;
    {
      const std::lock_guard in_call(calls_);
      throw_if_given_up();
      code = work(communicator_, side_->begin());
    }
    if (code == 0) {
      return Pending([this, end = side_->end()] {
        throw_if_given_up();
        end();
      });
    }
    throw_if_given_up();  // that was the cause
    const std::string trouble = library_.name + ": " + what + ": " + library_.error_text(code);
    if (lookout_.check) lookout_.check(trouble);
    throw Error(ErrorKind::kFailure, in_world() + trouble);
  }

 private:
  /// The library's call waits for the other ranks, maybe for ever. Where one of them has failed,
  /// this rank goes on without the thread that waits.
  void join(const GpuCollectives::Id& id) {
    struct Joined {
      void* communicator = nullptr;
      int code = 0;
    };
    const auto joined = std::make_shared<Joined>();
    Worker worker;
    auto done = worker.run(
        [joined, gpu = gpu_, library = library_, id, size = host_.size(), rank = host_.rank()] {
          gpu->use();
          joined->code = library.join(&joined->communicator, size, id, rank);
        });
    const auto check = [&] {
      if (lookout_.check) lookout_.check("");
    };
    try {
      while (done.wait_for(kBetweenLooks) != std::future_status::ready) check();
      constexpr int kLooks = 30;  // what the library met has a cause, which may be known soon
      for (int look = 0; joined->code != 0 && look < kLooks; ++look) {
        std::this_thread::sleep_for(kBetweenLooks);
        check();
      }
    } catch (...) {
      worker.abandon();
      throw;
    }
    done.get();
    require(joined->code, "the ranks cannot be connected");
    communicator_ = joined->communicator;
  }

  [[nodiscard]] std::string in_world() const {
    return "rank " + std::to_string(host_.rank()) + " in `" + host_.name() + "`: ";
  }

  void require(int code, const std::string& what) const {
    if (code == 0) return;
    throw Error(ErrorKind::kFailure, library_.name + ": " + what + ": " +
                                         library_.error_text(code) +
                                         " (the variable NCCL_DEBUG=WARN lets it say more)");
  }

  /// Throws if a rank, or the transport, is known to have failed.
  void look() {
    if (lookout_.check) lookout_.check("");
    int code = 0;
    if (library_.state(communicator_, &code) != 0 || code == 0 ||
        code == GpuCollectives::kInProgress)
      return;
    const std::string trouble = library_.name + ": " + library_.error_text(code);
    if (lookout_.check) lookout_.check(trouble);
    throw Error(ErrorKind::kFailure, in_world() + trouble);
  }

  void watch() {
    constexpr milliseconds kLongestCall(2000);
    for (std::unique_lock lock(mutex_);
         !changed_.wait_for(lock, kBetweenLooks, [&] { return ended_; });) {
      lock.unlock();
      std::exception_ptr failure;
      try {
        look();
      } catch (...) {  // the other thread's to throw
        failure = std::current_exception();
      }
      lock.lock();
      if (!failure) continue;
      failure_ = failure;
      lock.unlock();
      // A call that the other thread is in may itself be what waits for ever.
      const std::unique_lock in_call(calls_, kLongestCall);
      static_cast<void>(library_.abort(communicator_));
      return;
    }
  }

  Communicator& host_;
  Lookout lookout_;
  std::shared_ptr<Gpu> gpu_;
  GpuCollectives library_;
  std::shared_ptr<GpuSideQueue> side_;
  void* communicator_ = nullptr;
  std::timed_mutex calls_;  ///< held in a call of the library
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr failure_;  ///< after which the communicator is gone
  bool ended_ = false;
  std::thread thread_;  ///< last: begun when all else is there
};

class GpuCommunicator final : public Communicator {
 public:
  GpuCommunicator(Communicator& host, std::shared_ptr<Gpu> gpu, GpuCollectives library,
                  std::shared_ptr<GpuSideQueue> side)
      : Communicator(host.rank(), host.size()),
        host_(host),
        link_(host, std::move(gpu), std::move(library), std::move(side)) {
    follow([this] { return position(); });
  }
  GpuCommunicator(std::unique_ptr<Communicator> host, const Link& of)
      : GpuCommunicator(*host, of.gpu(), of.library(), of.side()) {
    own_ = std::move(host);
  }
  ~GpuCommunicator() override { follow({}); }
  GpuCommunicator(const GpuCommunicator&) = delete;
  GpuCommunicator& operator=(const GpuCommunicator&) = delete;

  std::unique_ptr<Communicator> split(int color) override {
    auto part = host_.split(color);
    if (part->size() == 1) return part;
    return std::make_unique<GpuCommunicator>(std::move(part), link_);
  }

  [[nodiscard]] std::string name() const override { return host_.name() + "/gpus"; }
  [[nodiscard]] Lookout lookout() const override { return host_.lookout(); }

 private:
  void follow(std::function<Position()> position) {
    if (const auto told = lookout().follow) told(name(), std::move(position));
  }

  /// The memory of a tensor, which must be the device's.
  [[nodiscard]] std::byte* bytes_of(const at::Tensor& tensor) const {
    OLMO_CHECK(tensor.device() == link_.gpu()->memory());
    return static_cast<std::byte*>(tensor.data_ptr());
  }

  Pending start_all_gather(const at::Tensor& mine, const at::Tensor& all) override {
    const auto* from = bytes_of(mine);
    auto* to = bytes_of(all);
    return link_.queue("all-gather", [&](void* communicator, GpuStream stream) {
      if (mine.nbytes() == 0) return 0;
      return link_.library().all_gather(from, to, mine.nbytes(), GpuCollectives::kBytes,
                                        communicator, stream);
    });
  }

  Pending start_all_to_all(const at::Tensor& send, std::span<const std::int64_t> send_counts,
                           const at::Tensor& receive,
                           std::span<const std::int64_t> receive_counts) override {
    const std::size_t element = send.element_size();
    const auto* from = bytes_of(send);
    auto* to = bytes_of(receive);
    const GpuCollectives& library = link_.library();
    std::int64_t sent = 0, received = 0;
    return link_.queue("all-to-all", [&](void* communicator, GpuStream stream) {
      int code = library.begin_group();
      for (int rank = 0; rank < size(); ++rank) {
        const auto i = static_cast<std::size_t>(rank);
        const auto out = static_cast<std::size_t>(send_counts[i]) * element;
        const auto in = static_cast<std::size_t>(receive_counts[i]) * element;
        if (code == 0 && out > 0 && rank != this->rank())
          code = library.send(from + sent, out, GpuCollectives::kBytes, rank, communicator, stream);
        if (code == 0 && in > 0 && rank != this->rank())
          code = library.receive(to + received, in, GpuCollectives::kBytes, rank, communicator,
                                 stream);
        if (rank == this->rank())
          keep(send, sent / static_cast<std::int64_t>(element), receive,
               received / static_cast<std::int64_t>(element), send_counts[i]);
        sent += static_cast<std::int64_t>(out);
        received += static_cast<std::int64_t>(in);
      }
      const int end = library.end_group();  // also after an error
      return code != 0 ? code : end;
    });
  }

  /// What a rank has for itself.
  static void keep(const at::Tensor& from, std::int64_t at, const at::Tensor& to,
                   std::int64_t there, std::int64_t count) {
    if (count > 0)
      to.view({-1}).narrow(0, there, count).copy_(from.view({-1}).narrow(0, at, count));
  }

  Pending start_broadcast(const at::Tensor& tensor, int root) override {
    auto* const bytes = bytes_of(tensor);
    return link_.queue("broadcast", [&](void* communicator, GpuStream stream) {
      if (tensor.nbytes() == 0) return 0;
      return link_.library().broadcast(bytes, bytes, tensor.nbytes(), GpuCollectives::kBytes, root,
                                       communicator, stream);
    });
  }

  void run_barrier() override { host_.barrier(); }

  std::unique_ptr<Communicator> own_;
  Communicator& host_;
  Link link_;
};

}  // namespace

/// The library would say of it that the usage is invalid, if anything.
void require_own_gpus(Communicator& host, const Gpu& gpu) {
  std::map<std::string, int> first;
  const auto all = all_gather_text(host, own_identity().machine() + " " + gpu.bus());
  for (int rank = 0; rank < host.size(); ++rank) {
    const auto [found, is_new] = first.try_emplace(all[static_cast<std::size_t>(rank)], rank);
    if (is_new) continue;
    throw AgreedError(ErrorKind::kUsage,
                      "ranks " + std::to_string(found->second) + " and " + std::to_string(rank) +
                          " have the same GPU, that at " +
                          found->first.substr(found->first.find(' ') + 1) +
                          " of their machine: expected one for each rank; start as many ranks on a "
                          "machine as it has GPUs");
  }
}

std::unique_ptr<Communicator> join_gpus(Communicator& host, std::shared_ptr<Gpu> gpu) {
  auto library = open_on_all(host, *gpu);
  require_own_gpus(host, *gpu);
  auto side = std::make_shared<GpuSideQueue>(gpu);
  return std::make_unique<GpuCommunicator>(host, std::move(gpu), std::move(library),
                                           std::move(side));
}

}  // namespace olmo::dist
