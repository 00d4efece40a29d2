#include "store/runs/run_folder.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <future>

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "store/file_system.h"
#include "store/runs/lock_holder.h"
#include "support/catch.h"
#include "support/forked.h"
#include "support/says.h"
#include "support/temporary_directory.h"

extern char** environ;

using namespace olmo;
using namespace olmo::store;
using olmo::test::says;
using olmo::test::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;

/// What refuses the lock on `folder`; empty if it is given.
std::string refusal(const fs::path& folder) {
  try {
    const RunLock lock(folder);
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    return error.what();
  }
}

/// Runs `work` in a child process that ends without destructors, as a killed one does.
template <typename Work>
void in_a_killed_child(const Work& work) {
  const pid_t pid = olmo::test::fork_briefly();
  if (pid == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
}

LockHolder elsewhere() {
  LockHolder holder = this_process();
  holder.host = "nid007";
  holder.boot_id = "another";
  holder.pid_namespace = "pid:[1]";
  return holder;
}

}  // namespace

TEST_CASE("a run folder is given to one at a time, and the other is told who has it", "[store]") {
  const TemporaryDirectory folder;
  const fs::path run = folder / "above" / "run";
  {
    const RunLock lock(run);
    CHECK(lock.held());
    CHECK_FALSE(lock.broken());
    const auto sentence = refusal(run);
    INFO(sentence);
    CHECK(says(sentence, "process " + std::to_string(::getpid()) + " on "));
    CHECK(says(sentence, "wait"));
    CHECK(lock.held());
  }
  CHECK_FALSE(fs::exists(folder / "above"));  // which the lock had made, and nobody had used
  CHECK(refusal(run).empty());
}

TEST_CASE("an orderly end leaves no lock file and everything else", "[store]") {
  const TemporaryDirectory folder;
  {
    const RunLock lock(folder / "run");
    std::ofstream(folder / "run" / "run.db") << "x";
    CHECK(fs::exists(folder / "run" / kRunLockName));
  }
  CHECK_FALSE(fs::exists(folder / "run" / kRunLockName));
  CHECK(fs::exists(folder / "run" / "run.db"));
}

TEST_CASE("the lock of a killed process is broken, and the next one says so", "[store]") {
  const TemporaryDirectory folder;
  in_a_killed_child([&] { new RunLock(folder.path()); });
  REQUIRE(fs::exists(folder / kRunLockName));
  const RunLock lock(folder.path());
  REQUIRE(lock.broken());
  CHECK(says(*lock.broken(), "process "));
}

TEST_CASE("a program that the holder started does not keep its lock", "[store]") {
  const TemporaryDirectory folder;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  in_a_killed_child([&] {
    new RunLock(folder.path());
    char sleep[] = "sleep", seconds[] = "1000";
    char* argv[] = {sleep, seconds, nullptr};
    pid_t child = 0;
    if (::posix_spawnp(&child, "sleep", nullptr, nullptr, argv, environ) != 0) ::_exit(1);
    if (::write(ends[1], &child, sizeof child) != sizeof child) ::_exit(2);
  });
  pid_t sleeping = 0;
  REQUIRE(::read(ends[0], &sleeping, sizeof sleeping) == sizeof sleeping);
  CHECK(::kill(sleeping, 0) == 0);
  CHECK(refusal(folder.path()).empty());
  ::kill(sleeping, SIGKILL);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("of many processes that start at once in an empty folder one gets the lock", "[store]") {
  const TemporaryDirectory folder;
  int go[2], results[2];
  REQUIRE(::pipe(go) == 0);
  REQUIRE(::pipe(results) == 0);
  constexpr int kProcesses = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(olmo::test::fork_briefly());
    if (children.back() != 0) continue;
    ::close(go[1]);
    char byte = 0;
    (void)!::read(go[0], &byte, 1);  // until the parent closes its end
    try {
      new RunLock(folder / "run");  // kept until the process is killed
      byte = '1';
    } catch (const Error&) {
      byte = '0';
    }
    (void)!::write(results[1], &byte, 1);
    ::pause();
    ::_exit(0);
  }
  ::close(go[0]);
  ::close(go[1]);
  int granted = 0;
  for (int i = 0; i < kProcesses; ++i) {
    char byte = 0;
    REQUIRE(::read(results[0], &byte, 1) == 1);
    if (byte == '1') ++granted;
  }
  CHECK(granted == 1);
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  ::close(results[0]);
  ::close(results[1]);
}

TEST_CASE("the lock of a requeued job is waited for until its server gives it up", "[store]") {
  const TemporaryDirectory folder;
  LockHolder before = elsewhere();
  before.scheduler = "Slurm";
  before.job = "12";
  std::ofstream(folder / kRunLockName) << to_text(before);
  // The server's lock, which nobody alive has.
  const int fd = ::open((folder / kRunLockName).c_str(), O_RDWR | O_CLOEXEC);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  REQUIRE(::fcntl(fd, F_OFD_SETLK, &whole) == 0);
  CHECK(says(refusal(folder.path()), "nid007"));  // this process is of no job
  const pid_t requeued = olmo::test::fork_briefly();
  if (requeued == 0) {
    ::close(fd);
    ::setenv("SLURM_JOB_ID", "12", 1);
    ::setenv("SLURM_RESTART_COUNT", "1", 1);
    try {
      const RunLock lock(folder.path());
      ::_exit(lock.broken() ? 0 : 1);
    } catch (const Error&) {
      ::_exit(2);
    }
  }
  ::close(fd);  // whether it waits already or comes later
  int status = -1;
  REQUIRE(::waitpid(requeued, &status, 0) == requeued);
  CHECK(status == 0);
}

TEST_CASE("a process whose lock was taken away knows it", "[store]") {
  const TemporaryDirectory folder;
  auto first = std::make_unique<RunLock>(folder.path());
  fs::remove(folder / kRunLockName);  // by a person who thought that it had ended
  const RunLock second(folder.path());
  CHECK_FALSE(first->held());
  CHECK_THROWS_AS(first->require_held(), Error);
  first.reset();
  CHECK(second.held());  // the first one has not removed the file of the second
  CHECK(fs::exists(folder / kRunLockName));
}

TEST_CASE("who asks whether a folder is locked is told what a start would be, and changes nothing",
          "[store]") {
  const TemporaryDirectory folder;
  CHECK_NOTHROW(require_unlocked(folder / "none"));
  CHECK_FALSE(fs::exists(folder / "none"));
  {
    const RunLock lock(folder.path());
    const auto start = refusal(folder.path());
    std::string asked;
    try {
      require_unlocked(folder.path());
    } catch (const Error& error) {
      asked = error.what();
    }
    CHECK(says(start, "is writing to this run folder"));
    CHECK(asked == start);
    CHECK(lock.held());
  }
  in_a_killed_child([&] { new RunLock(folder.path()); });
  const auto left = read_file(folder / kRunLockName);
  CHECK_NOTHROW(require_unlocked(folder.path()));  // a start breaks it
  CHECK(read_file(folder / kRunLockName) == left);
}

TEST_CASE("a lock file that was cut by a crash does not stop the next process", "[store]") {
  const TemporaryDirectory folder;
  std::ofstream(folder / kRunLockName) << R"({"host": "ni)";
  REQUIRE(lock_reach(folder.path()) == LockReach::kEveryone);
  CHECK(refusal(folder.path()).empty());
}

TEST_CASE("a holder on another machine is gone only if something proves it", "[store]") {
  LockHolder self = this_process();
  self.scheduler = "Slurm";
  self.job = "12";
  self.restart = 1;
  LockHolder holder = elsewhere();
  SECTION("a lock that every machine sees") {
    CHECK(why_gone(holder, self, KernelProof::kEveryone));
  }
  SECTION("a lock that only this machine sees proves nothing") {
    CHECK_FALSE(why_gone(holder, self, KernelProof::kThisMachine));
    CHECK_FALSE(why_gone(holder, self, KernelProof::kNone));
  }
  SECTION("the machine was restarted") {
    holder.host = self.host;
    holder.own_host = self.own_host = true;
    CHECK(why_gone(holder, self, KernelProof::kNone));
    holder.own_host = false;  // a container's name
    CHECK_FALSE(why_gone(holder, self, KernelProof::kNone));
  }
  SECTION("Slurm has requeued the job") {
    holder.scheduler = "Slurm";
    holder.job = "12";
    CHECK(why_gone(holder, self, KernelProof::kThisMachine));
    holder.restart = 1;  // another process of the same start
    CHECK_FALSE(why_gone(holder, self, KernelProof::kThisMachine));
    holder.restart = 0;
    holder.cluster = "another";
    CHECK_FALSE(why_gone(holder, self, KernelProof::kThisMachine));
    holder.cluster = "";
    holder.job = "13";
    CHECK_FALSE(why_gone(holder, self, KernelProof::kThisMachine));
  }
}

TEST_CASE("without locks a holder on this machine is gone if its process is", "[store]") {
  const LockHolder self = this_process();
  LockHolder holder = self;
  CHECK_FALSE(why_gone(holder, self, KernelProof::kNone));
  holder.pid_start += 1;  // the number belongs to another process now
  CHECK(why_gone(holder, self, KernelProof::kNone));
  holder = self;
  holder.pid_namespace = "pid:[1]";  // of another container: its numbers mean nothing here
  CHECK_FALSE(why_gone(holder, self, KernelProof::kNone));
  CHECK(why_gone(holder, self, KernelProof::kThisMachine));
}

TEST_CASE("a holder is read back as it was written", "[store]") {
  LockHolder holder = elsewhere();
  holder.job = "12[3]";
  holder.cluster = "a \"b\"";
  const auto read = parse_holder(to_text(holder));
  REQUIRE(read);
  CHECK(to_text(*read) == to_text(holder));
  CHECK(says(describe(holder), "nid007"));
  for (const char* bad : {"", "{}", "[1]", "null", "{\"host\": 1}"}) CHECK_FALSE(parse_holder(bad));
}

TEST_CASE("who writes to a run folder is seen: none, a process that runs, one that was killed",
          "[store]") {
  using State = FolderWriter::State;
  const TemporaryDirectory folder;
  CHECK(writer_of(folder.path()).state == State::kNone);
  {
    const RunLock lock(folder.path());
    const auto writer = writer_of(folder.path());
    CHECK(writer.state == State::kHolds);
    CHECK(says(writer.words, std::to_string(::getpid())));
  }
  CHECK(writer_of(folder.path()).state == State::kNone);
  in_a_killed_child([&] { static const RunLock kLock(folder.path()); });
  CHECK(writer_of(folder.path()).state == State::kGone);
}

TEST_CASE("a pipe in place of a run folder's lock makes nobody wait", "[store]") {
  const TemporaryDirectory folder;
  REQUIRE(::mkfifo((folder / kRunLockName).c_str(), 0600) == 0);
  const auto looked = std::async(std::launch::async, [&] {
    require_unlocked(folder.path());
    return writer_of(folder.path()).state;
  });
  const bool waits = looked.wait_for(std::chrono::seconds(60)) != std::future_status::ready;
  CHECK_FALSE(waits);
  const int writer = waits ? ::open((folder / kRunLockName).c_str(), O_RDWR) : -1;  // ends the wait
  looked.wait();
  if (waits) ::close(writer);
}
