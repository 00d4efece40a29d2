// olmo_meeting_bench [--folder] [RANKS …]
//
// How long processes of this machine take to become the ranks of one command, and what each takes
// from the system for it. The ranks meet in a store that rank 0 hosts, or in a folder, as those of
// --nproc do. Of each row the figures are those of the slowest rank, and of the one with the most
// descriptors. Prints a table in Markdown.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "dist/world.h"

namespace {

namespace dist = olmo::dist;
namespace fs = std::filesystem;
using olmo::seconds_since;
using Clock = std::chrono::steady_clock;

/// What one rank measures; all lie in memory that the processes share.
struct Measured {
  double met, barrier, split, left;
  std::int64_t descriptors;
};

std::int64_t open_descriptors() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()) - 1;
}

int measure(dist::World& world, Clock::time_point start, Measured& to) {
  constexpr int kBarriers = 20;
  dist::Communicator& ranks = world.ranks();
  to.met = seconds_since(start);
  ranks.barrier();
  auto begin = Clock::now();
  for (int i = 0; i < kBarriers; ++i) ranks.barrier();
  to.barrier = seconds_since(begin) / kBarriers;
  begin = Clock::now();
  const auto half = ranks.split(ranks.rank() % 2);
  to.split = seconds_since(begin);
  to.descriptors = open_descriptors();
  ranks.barrier();
  return 0;
}

/// Starts them, and waits for all. Returns how many have failed.
int run(const dist::Rendezvous& place, int size, Measured* measured) {
  const auto start = Clock::now();
  for (int rank = 0; rank < size; ++rank) {
    if (::fork() != 0) continue;
    Measured& mine = measured[rank];
    dist::Launch launch{.rank = rank, .size = size, .rendezvous = place};
    launch.placement = dist::Placement{.local_rank = rank, .local_size = size};
    int code = 1;
    try {
      code = dist::run_world(launch, {},
                             [&](dist::World& world) { return measure(world, start, mine); });
    } catch (const olmo::Error& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    }
    mine.left = seconds_since(start);
    std::_Exit(code);
  }
  int failed = 0;
  for (int status = 0; ::wait(&status) > 0;) failed += status != 0 ? 1 : 0;
  return failed;
}

template <class Member>
Member most(const Measured* measured, int size, Member Measured::*of) {
  return (std::max_element(measured, measured + size, [&](const auto& a, const auto& b) {
            return a.*of < b.*of;
          })->*of);
}

bool measure_meeting(const std::string& where, const dist::Rendezvous& place, int size) {
  const std::size_t bytes = sizeof(Measured) * static_cast<std::size_t>(size);
  void* shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return false;
  auto* measured = static_cast<Measured*>(shared);
  const int failed = run(place, size, measured);
  std::printf("| %d | %s | %.2f | %.2f | %.2f | %.2f | %lld | %lld |\n", size, where.c_str(),
              most(measured, size, &Measured::met), 1e3 * most(measured, size, &Measured::barrier),
              most(measured, size, &Measured::split), most(measured, size, &Measured::left),
              static_cast<long long>(measured[0].descriptors),
              static_cast<long long>(most(measured + 1, size - 1, &Measured::descriptors)));
  std::fflush(stdout);
  ::munmap(shared, bytes);
  return failed == 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  bool in_folder = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--folder") {
      in_folder = true;
    } else {
      sizes.push_back(std::atoi(argv[i]));
    }
  }
  if (sizes.empty()) sizes = {2, 8, 32};
  std::printf(
      "| ranks | meet in | met s | barrier ms | split s | all ended s | descriptors of rank 0 | of "
      "another |\n|---|---|---|---|---|---|---|---|\n");
  bool well = true;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    dist::Rendezvous place{.kind = dist::Rendezvous::Kind::kTcp, .host = "127.0.0.1"};
    place.port = static_cast<std::uint16_t>(29500 + i);
    place.attempt = std::to_string(::getpid());
    std::string folder = (fs::temp_directory_path() / "olmo-meeting-XXXXXX").string();
    if (in_folder) {
      if (::mkdtemp(folder.data()) == nullptr) return 1;
      place = {.kind = dist::Rendezvous::Kind::kFolder, .folder = folder};
    }
    well = measure_meeting(in_folder ? "a folder" : "a store", place, sizes[i]) && well;
    if (in_folder) fs::remove_all(folder);
  }
  return well ? 0 : 1;
}
