#include <chrono>
#include <thread>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/checkpoint_fixture.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_writer.h"
#include "support/catch.h"

namespace olmo::store::test {
namespace {

constexpr std::int64_t kRows = 30000;

/// Saves steps 1, 2, … without end, replacing step 1 at times and keeping two.
[[noreturn]] void save_forever(const std::filesystem::path& run_dir, std::int64_t first) {
  for (std::int64_t step = first;; ++step) {
    save_checkpoint(run_dir, example(step, static_cast<std::uint32_t>(step), kRows),
                    {.overwrite = true});
    apply_retention(run_dir, 2);
  }
}

}  // namespace

TEST_CASE(
    "killed at any moment of saving, a run has a whole checkpoint no older than the last finished "
    "one",
    "[store]") {
  const TempFolder folder;
  const auto& run_dir = folder.path();
  std::int64_t latest = 1;
  save_checkpoint(run_dir, example(1, 1, kRows));
  for (int round = 0; round < 25; ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        save_forever(run_dir, latest);  // begins by replacing the newest
      } catch (...) {
        ::_exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + 3711 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));  // it did not fail by itself

    const CheckpointReader reader(resolve_checkpoint(run_dir));
    REQUIRE(reader.step() >= latest);
    latest = reader.step();
    REQUIRE(same(read_checkpoint(reader.path()),
                 example(latest, static_cast<std::uint32_t>(latest), kRows)));
  }
  save_checkpoint(run_dir, example(latest + 1));
  for (const auto& entry : std::filesystem::directory_iterator(run_dir)) {
    INFO(entry.path());
    CHECK((entry.path().filename() == "latest" ||
           std::filesystem::exists(entry.path() / "manifest.json")));
  }
}

}  // namespace olmo::store::test
