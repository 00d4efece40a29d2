#include "store/runs/run_folder.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/process/terminal.h"
#include "store/file_system.h"
#include "store/runs/lock_holder.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;

constexpr int kTries = 20;  // each lost to another process that took or left the lock meanwhile

enum class Grant { kGranted, kHeld, kNoLocks };

Grant ask_kernel(int fd, const fs::path& path) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  while (::fcntl(fd, F_OFD_SETLK, &whole) != 0) {
    switch (errno) {
      case EINTR:
        continue;
      case EAGAIN:
      case EACCES:
        return Grant::kHeld;
      case ENOLCK:
      case EOPNOTSUPP:
      case ENOSYS:
      case EINVAL:
        return Grant::kNoLocks;
      default:
        throw Error(ErrorKind::kFailure,
                    path.string() + ": cannot be locked: " + std::strerror(errno));
    }
  }
  return Grant::kGranted;
}

std::string text_of(int fd) {
  std::array<char, 4096> buffer{};
  const ssize_t size = ::pread(fd, buffer.data(), buffer.size(), 0);
  return size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : std::string();
}

/// Why the process that `text` names is gone, whatever the kernel says of its lock.
std::optional<std::string> why_gone_anyhow(const std::string& text) {
  const auto holder = parse_holder(text);
  return holder ? why_gone(*holder, this_process(), KernelProof::kNone) : std::nullopt;
}

/// The server of a network file system keeps the locks of a machine that died for as long as its
/// lease runs (NFS: 90 s). Where the holder is known to be gone by another proof, that is waited
/// for: a requeued job would be refused otherwise.
Grant wait_for_lease(int fd, const fs::path& path) {
  constexpr int kSeconds = 150;
  for (int waited = 0; waited < kSeconds; ++waited) {
    const Grant grant = ask_kernel(fd, path);
    if (grant != Grant::kHeld) return grant;
    const std::string text = text_of(fd);
    const auto gone = why_gone_anyhow(text);
    if (!gone) return Grant::kHeld;
    if (waited == 0)
      log_line("waiting for the lock of " + describe(*parse_holder(text)) +
               " to be released: " + *gone);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return Grant::kHeld;
}

/// O_NONBLOCK: whatever else has this name, as a pipe, must not make a look wait for its writer.
int open_to_look(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

/// What the file at `path` says now; nothing if there is none.
std::optional<std::string> text_at(const fs::path& path) {
  const int fd = open_to_look(path);
  if (fd < 0) return std::nullopt;
  std::string text = text_of(fd);
  ::close(fd);
  return text;
}

bool leads_to(const fs::path& path, int fd) {
  struct stat by_path {
  }, by_fd{};
  return ::lstat(path.c_str(), &by_path) == 0 && ::fstat(fd, &by_fd) == 0 &&
         by_path.st_ino == by_fd.st_ino && by_path.st_dev == by_fd.st_dev;
}

/// Puts back what was renamed away by mistake, unless another file has its place already.
void put_back(const fs::path& away, const fs::path& path) {
  if (::link(away.c_str(), path.c_str()) != 0 && errno != EEXIST)
    ::rename(away.c_str(), path.c_str());
  ::unlink(away.c_str());
}

/// What the kernel would say to who asks now; asks for nothing.
Grant probe_kernel(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  if (::fcntl(fd, F_OFD_GETLK, &whole) != 0) return Grant::kNoLocks;
  return whole.l_type == F_UNLCK ? Grant::kGranted : Grant::kHeld;
}

[[noreturn]] void refuse_held(const fs::path& run_dir, const std::string& text) {
  const auto holder = parse_holder(text);
  throw Error(ErrorKind::kUsage,
              run_dir.string() + ": " +
                  (holder ? describe(*holder) : "another process, which has just started,") +
                  " is writing to this run folder: wait until it has ended, or stop it, and give "
                  "the same command again");
}

[[noreturn]] void refuse_unproved(const fs::path& run_dir, const std::string& text,
                                  KernelProof proof) {
  const auto holder = parse_holder(text);
  throw Error(
      ErrorKind::kUsage,
      run_dir.string() + ": " +
          (holder ? describe(*holder) : "a process that could not write its name") +
          " took this run folder and did not give it back, and nothing here proves that it "
          "has ended (" +
          (proof == KernelProof::kNone ? "this file system has no locks"
                                       : "locks of this file system do not reach other machines") +
          "): if you know that it has, remove " + (run_dir / kRunLockName).string() +
          " and give the same command again");
}

/// What is proved by a lock that the kernel has granted, or would.
KernelProof proof_of_grant(const fs::path& run_dir) {
  return lock_reach(run_dir) == LockReach::kEveryone ? KernelProof::kEveryone
                                                     : KernelProof::kThisMachine;
}

/// How an earlier process left its lock, which said `text`; nothing if it gave it back. Throws
/// Error(kUsage) if it may still run.
std::optional<std::string> judge_left(const fs::path& run_dir, const std::string& text,
                                      KernelProof proof) {
  if (text.empty()) return std::nullopt;
  const auto holder = parse_holder(text);
  const auto why = holder ? why_gone(*holder, this_process(), proof) : std::nullopt;
  if (!why && (holder || proof != KernelProof::kEveryone)) refuse_unproved(run_dir, text, proof);
  return (holder ? describe(*holder) : std::string("a process that wrote no name")) +
         " left the run folder without an orderly end; " +
         why.value_or("the kernel has released its lock");
}

constexpr char kFormat[] = "olmo-harness-run-1";

}  // namespace

RunLock::RunLock(fs::path run_dir)
    : run_dir_(std::move(run_dir)), path_(run_dir_ / kRunLockName), text_(to_text(this_process())) {
  try {
    for (int i = 0; i < kTries; ++i) {
      folders_.emplace(run_dir_);
      if (try_once()) return;
      if (fd_ >= 0) ::close(fd_);
      fd_ = -1;
    }
    throw Error(ErrorKind::kUsage,
                path_.string() + ": other processes take this lock all the time: try again");
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    throw;
  }
}

RunLock::~RunLock() {
  if (held()) ::unlink(path_.c_str());
  ::close(fd_);
}

bool RunLock::held() const { return leads_to(path_, fd_) && text_of(fd_) == text_; }

void RunLock::require_held() const {
  if (held()) return;
  const auto holder = parse_holder(text_at(path_).value_or(""));
  throw Error(ErrorKind::kFailure,
              path_.string() + ": this process has lost the lock of the run folder" +
                  (holder ? " to " + describe(*holder) : ": the file was removed or changed") +
                  "; it ends without writing more, since another one may write here now");
}

/// False: another process was faster, try again.
bool RunLock::try_once() {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) {
    if (errno == ENOENT) return false;  // the folder was removed by the process that had made it
    throw Error(ErrorKind::kUsage,
                path_.string() + ": the run folder cannot be locked: " + std::strerror(errno));
  }
  switch (wait_for_lease(fd_, path_)) {
    case Grant::kGranted:
      return judge_and_take();
    case Grant::kNoLocks:
      return take_without_kernel();
    case Grant::kHeld:
      break;
  }
  const std::string text = text_of(fd_);
  if (!leads_to(path_, fd_)) return false;
  refuse_held(run_dir_, text);
}

bool RunLock::judge_and_take() {
  if (!leads_to(path_, fd_)) return false;
  broken_ = judge_left(run_dir_, text_of(fd_), proof_of_grant(run_dir_));
  write_holder();
  return leads_to(path_, fd_);
}

bool RunLock::take_without_kernel() {
  const auto text = text_at(path_);
  if (!text) return false;
  broken_ = judge_left(run_dir_, *text, KernelProof::kNone);
  fs::path away = path_;
  away += ".away-" + std::to_string(::getpid());
  if (::rename(path_.c_str(), away.c_str()) != 0) return false;
  if (text_at(away) != text) {
    put_back(away, path_);
    return false;
  }
  ::unlink(away.c_str());
  ::close(fd_);
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) return false;
  write_holder();
  return held();
}

void RunLock::write_holder() {
  const bool written =
      ::ftruncate(fd_, 0) == 0 &&
      ::pwrite(fd_, text_.data(), text_.size(), 0) == static_cast<ssize_t>(text_.size()) &&
      ::fsync(fd_) == 0;
  if (written) return;
  const std::string why = std::strerror(errno);
  ::unlink(path_.c_str());
  throw Error(ErrorKind::kFailure, path_.string() + ": cannot be written: " + why);
}

void require_unlocked(const fs::path& run_dir) {
  const int fd = open_to_look(run_dir / kRunLockName);
  if (fd < 0) return;  // no process has it, or the start says why it cannot be locked
  const std::string text = text_of(fd);
  const Grant grant = probe_kernel(fd);
  ::close(fd);
  if (grant == Grant::kHeld && why_gone_anyhow(text)) return;  // a start would wait for it
  if (grant == Grant::kHeld) refuse_held(run_dir, text);
  judge_left(run_dir, text,
             grant == Grant::kNoLocks ? KernelProof::kNone : proof_of_grant(run_dir));
}

FolderWriter writer_of(const fs::path& run_dir) {
  using State = FolderWriter::State;
  const int fd = open_to_look(run_dir / kRunLockName);
  if (fd < 0) return {errno == ENOENT ? State::kNone : State::kUnknown};
  const std::string text = text_of(fd);
  const Grant grant = probe_kernel(fd);
  ::close(fd);
  const auto holder = parse_holder(text);
  const std::string who = holder ? describe(*holder) : "a process that wrote no name";
  const auto proof = grant == Grant::kGranted ? proof_of_grant(run_dir) : KernelProof::kNone;
  const auto why = holder ? why_gone(*holder, this_process(), proof) : std::nullopt;
  if (why) return {State::kGone, who + ": " + *why};
  if (grant == Grant::kHeld) return {State::kHolds, who};
  return {proof == KernelProof::kEveryone ? State::kGone : State::kUnknown, who};
}

std::optional<RunIdentity> read_identity(const fs::path& run_dir) {
  const fs::path file = run_dir / kRunIdentityName;
  if (!fs::exists(file)) return std::nullopt;
  const Json json = recorded_json(read_file(file));
  try {
    if (json.is_object() && json.at("format") == kFormat) {
      return RunIdentity{.run_id = json.at("run_id").get<std::string>(),
                         .folder = json.at("folder").get<std::string>(),
                         .database = json.at("database").get<std::string>()};
    }
  } catch (const Json::exception&) {  // the sentence below
  }
  throw Error(ErrorKind::kDamaged,
              file.string() +
                  ": does not say which run this folder holds, expected run_id, folder "
                  "and database of format " +
                  kFormat + "; if you remove it, the checkpoints say it");
}

void write_identity(const fs::path& run_dir, const std::string& run_id, const fs::path& database) {
  const nlohmann::ordered_json json = {
      {"format", kFormat},
      {"run_id", run_id},
      {"folder", fs::absolute(run_dir).lexically_normal().string()},
      {"database", fs::absolute(database).lexically_normal().string()}};
  write_file_atomically(run_dir / kRunIdentityName, json_text(json, 2) + "\n");
}

bool same_place(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const auto whole = [](const fs::path& path) {
    std::error_code ignored;
    const fs::path text = fs::weakly_canonical(fs::absolute(path), ignored);
    return text.has_filename() ? text : text.parent_path();
  };
  return whole(a) == whole(b);
}

// A folder that was moved is the run; one that was copied is not, for both would write to one
// record. The folder at the old place tells which it was: it still says that it holds this run, or
// it does not.
bool is_copy(const fs::path& run_dir, const RunIdentity& identity) {
  if (same_place(run_dir, identity.folder)) return false;
  try {
    const auto other = read_identity(identity.folder);
    return other && other->run_id == identity.run_id;
  } catch (const Error&) {  // whatever lies there now, it does not say that it is this run
    return false;
  }
}

}  // namespace olmo::store
