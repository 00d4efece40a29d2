#include "train/shared_order.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

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
/// `nodes`: ranks of a node see one folder, and no other node's.
int wrong_steps(const fs::path& folder, int ranks, int nodes) {
  const auto config = config_in(folder);
  std::atomic<int> wrong{0};
  dist::run_ranks(ranks, [&](dist::Communicator& communicator) {
    using Role = data::BatchSource::OrderRole;
    const int rank = communicator.rank(), node = rank * nodes / ranks;
    const bool first_of_node = rank == 0 || (rank - 1) * nodes / ranks != node;
    data::BatchSource alone(config), batches(config);
    batches.keep_orders_in(folder / std::to_string(node), rank == 0 ? Role::kMaker : Role::kReader,
                           0);
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
