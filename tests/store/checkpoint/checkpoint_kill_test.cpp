#include <functional>

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"
#include "support/forked.h"

namespace olmo::store::test {
namespace {

/// Replaces `step` and saves the one after it, keeping two.
void save_two(const std::filesystem::path& run_dir, std::int64_t step) {
  for (const std::int64_t next : {step, step + 1}) {
    save_checkpoint(run_dir, example(next, static_cast<std::uint32_t>(next)), {.overwrite = true});
    apply_retention(run_dir, 2);
  }
}

/// Runs `body` in a child and kills it at its `limit`th entry to or return from a system call.
/// Returns how many it got through, nothing if this machine lets no process trace another.
std::optional<int> kill_at(int limit, const std::function<void()>& body) {
  const pid_t child = olmo::test::fork_briefly();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
    ::raise(SIGSTOP);
    try {
      body();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  int calls = -1;  // the first stop is its own
  while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    if (++calls == limit) {
      ::kill(child, SIGKILL);
    } else {
      ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    }
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) return std::nullopt;
  REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));  // it did not fail by itself
  return calls;
}

}  // namespace

TEST_CASE(
    "killed at any moment of saving, a run has a whole checkpoint no older than the last finished "
    "one",
    "[store]") {
  const TempFolder folder;
  const auto& run_dir = folder.path();
  std::int64_t latest = 1;
  save_checkpoint(run_dir, example(1, 1));
  const auto calls = kill_at(-1, [&] { save_two(run_dir, latest); });
  if (!calls) {
    WARN("no process may trace another here");
    return;
  }
  REQUIRE(*calls > 100);
  latest = 2;
  constexpr int kMoments = 60;
  for (int moment = 0; moment < kMoments; ++moment) {
    kill_at(*calls * moment / kMoments, [&] { save_two(run_dir, latest); });
    INFO("killed at call " << *calls * moment / kMoments << " of " << *calls);
    const CheckpointReader reader(resolve_checkpoint(run_dir));
    REQUIRE(reader.step() >= latest);
    latest = reader.step();
    REQUIRE(
        same(read_checkpoint(reader.path()), example(latest, static_cast<std::uint32_t>(latest))));
  }
  save_checkpoint(run_dir, example(latest + 1));
  for (const auto& entry : std::filesystem::directory_iterator(run_dir)) {
    INFO(entry.path());
    CHECK((entry.path().filename() == "latest" ||
           std::filesystem::exists(entry.path() / "manifest.json")));
  }
}

}  // namespace olmo::store::test
