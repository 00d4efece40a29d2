#include "dist/gpu_ranks.h"

#include <numeric>

#include <ATen/ATen.h>

#include "core/compute/gpu.h"
#include "core/compute/libtorch.h"
#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "dist/address.h"
#include "dist/exchange.h"
#include "dist/gloo_ranks.h"
#include "dist/store.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/processes.h"
#include "support/temporary_directory.h"

// Ranks are processes, as an emulated GPU is one for each. What they check throws.

namespace olmo::dist {
namespace {

using test::Environment;

/// A rank in its process.
struct Place {
  Policy policy;
  Store& store;
  Communicator& host;
  Communicator& gpus;
};

at::Tensor on_device(const Place& place, const at::Tensor& values) {
  return to_device(place.policy, values);
}

/// `work` on each of `size` ranks with an emulated GPU that works in `mode` (tests/ops/gpu/fake).
/// The ranks learn of a failure that one of them writes into the store, or that `told` tells.
void on_hosts(int size, const std::string& mode,
              const std::function<void(const Policy&, Store&, Communicator&)>& work,
              const std::function<std::optional<std::string>()>& told = {}) {
  const Environment gpus("FAKE_GPUS", std::to_string(size)), way("FAKE_GPU_MODE", mode);
  const test::TemporaryDirectory folder;
  test::Processes ranks(size, [&](int rank) {
    const auto store = file_store(folder / "store");
    GlooOptions options;
    options.address = kLoopback;
    options.check = [failures = std::shared_ptr(store->again()), told](const std::string& trouble) {
      if (const auto failure = told ? told() : failures->get("failure"))
        throw Error(ErrorKind::kStopped, trouble.empty() ? *failure : *failure + ", " + trouble);
    };
    const auto host = join_gloo(*store, "world", rank, size, options);
    Policy policy = resolve_policy("portable", "auto", 1);
    policy.device = Device::kCuda;
    policy.gpu = Gpu::open(policy.device, OLMO_FAKE_CUDA, {rank, size});
    work(policy, *store, *host);
    return 0;
  });
  for (int rank = 0; rank < size; ++rank) {
    const auto ended = ranks.wait(rank);
    INFO("rank " << rank << ", " << mode << ": " << ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.err.empty());
  }
}

void on_gpus(int size, const std::string& mode, const std::function<void(const Place&)>& work) {
  on_hosts(size, mode, [&](const Policy& policy, Store& store, Communicator& host) {
    const auto between = join_gpus(host, policy.gpu);
    work({policy, store, host, *between});
  });
}

at::Tensor of_rank(std::int64_t count, int rank) { return at::arange(count) + 100 * rank; }

/// The message of the Error that `work` throws.
template <class Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST_CASE("collectives between GPUs move the bytes that those between hosts move", "[dist][gpu]") {
  for (const char* mode : {"now", "delayed", "ahead"}) {
    on_gpus(3, mode, [](const Place& place) {
      const int rank = place.gpus.rank(), size = place.gpus.size();
      const auto same = [&](const at::Tensor& found, const at::Tensor& expected) {
        OLMO_CHECK(at::equal(to_host(place.policy, found), expected));
      };
      // A gather, of bytes that are not a whole number of anything else, and in place.
      const at::Tensor all = on_device(place, at::zeros({9}, at::kBFloat16));
      place.gpus.all_gather(on_device(place, of_rank(3, rank).to(at::kBFloat16)), all).wait();
      same(all, at::cat({of_rank(3, 0), of_rank(3, 1), of_rank(3, 2)}).to(at::kBFloat16));
      const at::Tensor whole = on_device(place, at::zeros({40'000 * size}, at::kLong));
      const at::Tensor part = whole.narrow(0, 40'000 * rank, 40'000);
      part.copy_(on_device(place, of_rank(40'000, rank)));
      place.gpus.all_gather(part, whole).wait();
      same(whole, at::cat({of_rank(40'000, 0), of_rank(40'000, 1), of_rank(40'000, 2)}));
      // Rank i has i + j - 1 elements for rank j, so some have none.
      std::vector<std::int64_t> sent, received;
      for (int j = 0; j < size; ++j) {
        sent.push_back(std::max(0, rank + j - 1));
        received.push_back(std::max(0, j + rank - 1));
      }
      const auto sum = [](const auto& counts) {
        return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
      };
      const at::Tensor out = of_rank(sum(sent), rank),
                       by_host = at::zeros({sum(received)}, at::kLong);
      const at::Tensor by_gpu = on_device(place, by_host);
      place.host.all_to_all(out, sent, by_host, received).wait();
      place.gpus.all_to_all(on_device(place, out), sent, by_gpu, received).wait();
      same(by_gpu, by_host);
      const at::Tensor told = on_device(place, of_rank(5, rank));
      place.gpus.broadcast(told, 2).wait();
      same(told, of_rank(5, 2));
      OLMO_CHECK(place.gpus.traffic().of(Collective::kAllGather).calls == 2);
      OLMO_CHECK(place.gpus.position().number == 4);
    });
  }
}

TEST_CASE("parts of ranks on GPUs are worlds of their own", "[dist][gpu]") {
  on_gpus(3, "delayed", [](const Place& place) {
    const auto part = place.gpus.split(place.gpus.rank() == 1 ? 1 : 0);
    OLMO_CHECK(part->size() == (place.gpus.rank() == 1 ? 1 : 2));
    const at::Tensor all = on_device(place, at::zeros({2 * part->size()}, at::kLong));
    part->all_gather(on_device(place, of_rank(2, place.gpus.rank())), all).wait();
    const at::Tensor expected =
        part->size() == 1 ? of_rank(2, 1) : at::cat({of_rank(2, 0), of_rank(2, 2)});
    OLMO_CHECK(at::equal(to_host(place.policy, all), expected));
  });
}

TEST_CASE("what waits for a rank that has failed is given up, and every rank learns why",
          "[dist][gpu]") {
  for (const char* mode : {"now", "delayed", "ahead"}) {
    on_gpus(2, mode, [](const Place& place) {
      place.host.barrier();
      if (place.gpus.rank() == 1) return place.store.set("failure", "rank 1 has failed");
      const at::Tensor all = on_device(place, at::zeros({2}, at::kLong));
      const auto said = error_of([&] {
        place.gpus.all_gather(on_device(place, of_rank(1, 0)), all).wait();
        to_host(place.policy, all);
      });
      OLMO_CHECK(said == "rank 1 has failed");
      OLMO_CHECK(error_of([&] { place.gpus.broadcast(all, 0).wait(); }) == said);
    });
  }
}

TEST_CASE("ranks do not wait in a call that joins them for one that is gone", "[dist][gpu]") {
  const test::TemporaryDirectory folder;
  const auto sign = folder / "stuck";
  const Environment stuck("FAKE_NCCL_STUCK", sign.string());
  const auto gone = [&]() -> std::optional<std::string> {
    if (!std::filesystem::exists(sign)) return std::nullopt;
    return "rank 1 has failed";
  };
  on_hosts(
      2, "delayed",
      [](const Policy& policy, Store&, Communicator& host) {
        OLMO_CHECK(error_of([&] { join_gpus(host, policy.gpu); }) == "rank 1 has failed");
        std::_Exit(0);  // as a rank ends that knows of a failure
      },
      gone);
}

TEST_CASE("a transport between GPUs that breaks is an error that says so", "[dist][gpu]") {
  const Environment broken("FAKE_NCCL_FAIL", "2");
  on_gpus(2, "delayed", [](const Place& place) {
    const at::Tensor all = on_device(place, at::zeros({2}, at::kLong));
    const auto gather = [&] {
      place.gpus.all_gather(on_device(place, of_rank(1, place.gpus.rank())), all).wait();
      to_host(place.policy, all);
    };
    gather();
    const auto said = error_of(gather);
    OLMO_CHECK(said == "rank " + std::to_string(place.gpus.rank()) +
                           " in `world`: NCCL 2.27.3: unhandled system error");
  });
}

}  // namespace
}  // namespace olmo::dist
