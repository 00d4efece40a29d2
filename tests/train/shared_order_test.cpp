#include "train/shared_order.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "dist/agreement.h"
#include "dist/thread_ranks.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
namespace fs = std::filesystem;

namespace {

/// Twelve instances of two tokens; a step takes three.
data::BatchConfig config_in(const fs::path& folder) {
  std::vector<std::uint16_t> ids(24);
  std::iota(ids.begin(), ids.end(), std::uint16_t{0});
  std::ofstream(folder / "a.npy", std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()), 48);
  data::BatchConfig config;
  config.data.paths = {(folder / "a.npy").string()};
  config.sequence_length = 2;
  config.global_batch_size = 3;
  return config;
}

/// The number of steps, of two epochs, in which a rank's batch differed from one process's.
/// `nodes`: ranks of a node see one folder, and no other node's. Rank 0 looks at the first `seen`
/// batches before the others do.
int wrong_steps(const fs::path& folder, int ranks, int nodes, std::uint64_t seen = 0) {
  const auto config = config_in(folder);
  std::atomic<int> wrong{0};
  dist::run_ranks(ranks, [&](dist::Communicator& communicator) {
    using Role = data::BatchSource::OrderRole;
    const int rank = communicator.rank(), node = rank * nodes / ranks;
    const bool first_of_node = rank == 0 || (rank - 1) * nodes / ranks != node;
    data::BatchSource alone(config), batches(config);
    batches.keep_orders_in(folder / std::to_string(node), rank == 0 ? Role::kMaker : Role::kReader,
                           0);
    for (std::uint64_t step = 1; rank == 0 && step <= seen; ++step) batches.batch(step);
    for (std::int64_t step = 1; step <= 8; ++step) {
      train::share_order(batches, communicator, first_of_node, step);
      const auto number = static_cast<std::uint64_t>(step);
      if (batches.batch(number).digest != alone.batch(number).digest) ++wrong;
      communicator.barrier();  // as a step's exchanges: no rank is a step ahead
    }
  });
  return wrong;
}

}  // namespace

TEST_CASE("ranks that see one folder read the order that rank 0 has made", "[train]") {
  const test::TemporaryDirectory folder;
  CHECK(wrong_steps(folder.path(), 4, 1) == 0);
  CHECK(fs::exists(data::order_path(folder.path() / "0", 1)));
}

TEST_CASE("a node that does not see rank 0's folder makes the order for itself", "[train]") {
  const test::TemporaryDirectory folder;
  CHECK(wrong_steps(folder.path(), 4, 2) == 0);
  CHECK(fs::exists(data::order_path(folder.path() / "1", 1)));
}

TEST_CASE("rank 0 shares an order of which it has looked at a batch, as before a resume",
          "[train]") {
  const test::TemporaryDirectory folder;
  CHECK(wrong_steps(folder.path(), 3, 1, 1) == 0);
}

TEST_CASE("an order that cannot be written ends all ranks with the same sentence", "[train]") {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "0") << "in the way";
  const auto config = config_in(folder.path());
  std::atomic<int> told{0};
  dist::run_ranks(3, [&](dist::Communicator& ranks) {
    using Role = data::BatchSource::OrderRole;
    data::BatchSource batches(config);
    batches.keep_orders_in(folder / "0", ranks.rank() == 0 ? Role::kMaker : Role::kReader, 0);
    try {
      train::share_order(batches, ranks, ranks.rank() == 0, 1);
    } catch (const dist::AgreedError&) {
      ++told;
    }
  });
  CHECK(told == 3);
}
