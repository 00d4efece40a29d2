// olmo_ranks_bench [PROCESSES [ROUNDS]]
//
// Collectives of processes of this machine over Gloo, by size, against memcpy of as many bytes. Of
// an all-gather and an all-to-all each rank brings the given bytes in all; the figures are the
// median time over the rounds (default 15) and the bytes that a rank sends in that time (GB/s, 1e9
// bytes). Prints a table in Markdown.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "dist/gloo_ranks.h"

namespace {

namespace dist = olmo::dist;
using Clock = std::chrono::steady_clock;

double median_seconds(int rounds, const std::function<void()>& action) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    action();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void measure(dist::Communicator& ranks, std::int64_t bytes, int rounds) {
  const std::int64_t size = ranks.size(), piece = bytes / size;
  const at::Tensor mine = olmo::new_tensor({bytes}, at::kByte);
  const at::Tensor all = olmo::new_tensor({bytes * size}, at::kByte);
  const at::Tensor copy = olmo::new_tensor({bytes}, at::kByte);
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(size), piece);
  const at::Tensor send = mine.narrow(0, 0, piece * size),
                   receive = copy.narrow(0, 0, piece * size);
  const double gather = median_seconds(rounds, [&] { ranks.all_gather(mine, all).wait(); });
  const double exchange =
      median_seconds(rounds, [&] { ranks.all_to_all(send, counts, receive, counts).wait(); });
  const double broadcast = median_seconds(rounds, [&] { ranks.broadcast(mine, 0).wait(); });
  const double memory = median_seconds(rounds, [&] {
    std::memcpy(olmo::mutable_host_bytes(copy).data(), olmo::host_bytes(mine).data(),
                static_cast<std::size_t>(bytes));
  });
  if (ranks.rank() != 0) return;
  const auto rate = [](std::int64_t sent, double time) {
    return static_cast<double>(sent) / time / 1e9;
  };
  std::printf("| %lld | %lld | %.0f | %.2f | %.0f | %.2f | %.0f | %.2f |\n",
              static_cast<long long>(size), static_cast<long long>(bytes), gather * 1e6,
              rate(bytes * (size - 1), gather), exchange * 1e6, rate(piece * (size - 1), exchange),
              broadcast * 1e6, rate(bytes, memory));
  std::fflush(stdout);
}

void run(const std::string& folder, int rank, int size, int rounds) {
  dist::GlooOptions options;
  options.address = "127.0.0.1";
  const auto ranks = dist::join_gloo(*dist::file_store(folder), "bench", rank, size, options);
  const double barrier = median_seconds(200, [&] { ranks->barrier(); });
  if (rank == 0) {
    std::printf("%d processes: a barrier takes %.0f us\n\n", size, barrier * 1e6);
    std::printf(
        "| processes | bytes | all-gather us | GB/s | all-to-all us | GB/s | broadcast us | memcpy "
        "GB/s |\n|---|---|---|---|---|---|---|---|\n");
  }
  for (const std::int64_t bytes : {64LL, 64LL << 10U, 1LL << 20U, 16LL << 20U, 128LL << 20U})
    measure(*ranks, bytes, rounds);
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  std::string folder = (std::filesystem::temp_directory_path() / "olmo-ranks-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  for (int rank = 0; rank < size; ++rank) {
    if (::fork() != 0) continue;
    try {
      run(folder, rank, size, rounds);
    } catch (const olmo::Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(1);
    }
    std::_Exit(0);
  }
  int failed = 0;
  for (int status = 0; ::wait(&status) > 0;) failed += status != 0 ? 1 : 0;
  std::filesystem::remove_all(folder);
  return failed == 0 ? 0 : 1;
}
