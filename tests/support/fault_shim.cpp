// A library that is loaded before all others (LD_PRELOAD) and stands between a program and the
// calls that change files. Below one folder it counts these calls, makes the n-th fail, writes half
// of it, or kills the process, and logs what was changed and synced. fault_shim.h says how it is
// used. The real calls are made past the C library, so nothing has to be looked up.
#include "support/fault_shim.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using namespace olmo::test;

std::atomic<bool> watching{false};

struct Plan {
  /// Libraries call on while the process ends.
  ~Plan() { watching = false; }

  std::string folder;  ///< empty: nothing is looked at
  std::string calls;   ///< "," + names + ","; empty: all
  long at = 0;
  int action = 0;
  bool repeat = false;
  int log = -1;
  std::string fired;  ///< a file that is made when the fault happens
};

std::mutex mutex;  // of the plan and of the order in the log
Plan plan;
std::atomic<long> count{0};
std::atomic<long> allocations{0};
std::atomic<long> failing_allocation{0};  ///< the n-th, from 1; 0: none
/// Allocations of the library between these addresses are not counted.
std::atomic<std::uintptr_t> spared_begin{0}, spared_end{0};

/// True for the allocation that is to fail, and for those after it where that is asked for.
bool out_of_memory(const void* caller) {
  const long at = failing_allocation.load(std::memory_order_relaxed);
  if (at == 0) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  if (address >= spared_begin && address < spared_end) return false;
  const long n = ++allocations;
  return at > 0 ? n == at : n >= -at;
}

/// Empty, and without memory, while nothing is watched; so is path_of.
std::string absolute(int folder, const char* path) {
  if (!watching) return {};
  if (path[0] == '/') return path;
  char base[4096];
  ssize_t size = 0;
  if (folder == AT_FDCWD) {
    size = syscall(SYS_getcwd, base, sizeof base) - 1;
  } else {
    const std::string link = "/proc/self/fd/" + std::to_string(folder);
    size = syscall(SYS_readlink, link.c_str(), base, sizeof base);
  }
  return size <= 0 ? path : std::string(base, static_cast<std::size_t>(size)) + "/" + path;
}

std::string path_of(int fd) {
  if (!watching) return {};
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = syscall(SYS_readlink, link.c_str(), path, sizeof path);
  return size <= 0 ? "" : std::string(path, static_cast<std::size_t>(size));
}

bool inside(const std::string& path) {
  return path.starts_with(plan.folder) &&
         (path.size() == plan.folder.size() || path[plan.folder.size()] == '/');
}

std::uint64_t inode_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

std::uint64_t inode_at(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

/// Appends a change to the log; the lock is held.
void log_change(FaultChange change, std::uint64_t inode, std::int64_t offset,
                const std::string& path, const void* data, std::size_t size) {
  if (plan.log < 0) return;
  FaultRecord head{};
  head.change = change;
  head.inode = inode;
  head.offset = offset;
  head.path_size = static_cast<std::uint32_t>(path.size());
  head.data_size = size;
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes += path;
  bytes.append(static_cast<const char*>(data), size);
  for (std::size_t done = 0; done < bytes.size();) {
    const long written = syscall(SYS_write, plan.log, bytes.data() + done, bytes.size() - done);
    if (written <= 0) ::abort();
    done += static_cast<std::size_t>(written);
  }
}

/// One watched call. The lock is held while it lives, so that the log has the order of the disk.
class Call {
 public:
  Call(const char* name, const std::string& path) {
    if (!watching) return;
    lock_ = std::unique_lock(mutex);
    if (plan.folder.empty() || !inside(path)) {
      lock_.unlock();
      return;
    }
    inside_ = true;
    const bool counts =
        plan.calls.empty() || plan.calls.find("," + std::string(name) + ",") != std::string::npos;
    if (!counts) return;
    const long n = ++count;
    if (plan.at == 0 || (plan.repeat ? n < plan.at : n != plan.at)) return;
    action_ = plan.action;
    if (!plan.fired.empty()) {
      const int file = static_cast<int>(
          syscall(SYS_openat, AT_FDCWD, plan.fired.c_str(), O_CREAT | O_WRONLY, 0644));
      const std::string text = std::string(name) + " " + path + "\n";
      syscall(SYS_write, file, text.data(), text.size());
      syscall(SYS_close, file);
    }
    if (action_ == kFaultKill) syscall(SYS_kill, ::getpid(), SIGKILL);
  }
  /// The call is to fail; errno is set.
  [[nodiscard]] bool fails() const {
    if (action_ <= 0) return false;
    errno = action_;
    return true;
  }
  [[nodiscard]] std::size_t allowed(std::size_t size) const {
    return action_ == kFaultShort && size > 1 ? size / 2 : size;
  }
  [[nodiscard]] bool logs() const { return inside_ && plan.log >= 0; }

 private:
  std::unique_lock<std::mutex> lock_;
  bool inside_ = false;
  int action_ = 0;
};

void arm_from_environment() {
  const auto variable = [](const char* name) {
    const char* value = ::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string folder = variable("OLMO_FAULT_FOLDER");
  if (folder.empty()) return;
  plan.fired = variable("OLMO_FAULT_FIRED");
  const std::string log = variable("OLMO_FAULT_LOG");
  if (!log.empty()) {
    plan.log = static_cast<int>(syscall(SYS_openat, AT_FDCWD, log.c_str(),
                                        O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644));
  }
  fault_arm(folder.c_str(), variable("OLMO_FAULT_CALLS").c_str(),
            std::atol(variable("OLMO_FAULT_AT").c_str()),
            std::atoi(variable("OLMO_FAULT_ACTION").c_str()),
            static_cast<int>(!variable("OLMO_FAULT_REPEAT").empty()));
}

/// Armed as soon as `plan` exists.
const bool armed = (arm_from_environment(), true);

int result(long value) { return static_cast<int>(value); }

int open_at(int folder, const char* name, int flags, mode_t mode) {
  const bool writes = (flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR)) != 0;
  if (!watching || !writes) return result(syscall(SYS_openat, folder, name, flags, mode));
  const std::string path = absolute(folder, name);
  const Call call("open", path);
  if (call.fails()) return -1;
  const bool is_new = call.logs() && (flags & O_CREAT) != 0 && inode_at(path) == 0;
  const int fd = result(syscall(SYS_openat, folder, name, flags, mode));
  if (fd >= 0 && call.logs()) {
    if (is_new) log_change(FaultChange::kCreate, inode_of(fd), 0, path, "", 0);
    if (!is_new && (flags & O_TRUNC) != 0)
      log_change(FaultChange::kTruncate, inode_of(fd), 0, path, "", 0);
  }
  return fd;
}

int rename_at(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  const std::string source = absolute(from_folder, from), target = absolute(to_folder, to);
  const Call call("rename", source);
  if (call.fails()) return -1;
  const int code = result(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
  if (code == 0 && call.logs()) {
    const auto change =
        (flags & RENAME_EXCHANGE) != 0 ? FaultChange::kExchange : FaultChange::kRename;
    log_change(change, 0, 0, source, target.data(), target.size());
  }
  return code;
}

int remove_at(int folder, const char* name, int flags) {
  const std::string path = absolute(folder, name);
  const Call call((flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", path);
  if (call.fails()) return -1;
  const int code = result(syscall(SYS_unlinkat, folder, name, flags));
  if (code == 0 && call.logs()) log_change(FaultChange::kRemove, 0, 0, path, "", 0);
  return code;
}

int sync(const char* name, int fd) {
  const Call call(name, path_of(fd));
  if (call.fails()) return -1;
  const int code = result(syscall(SYS_fsync, fd));
  if (code == 0 && call.logs()) log_change(FaultChange::kSync, inode_of(fd), 0, path_of(fd), "", 0);
  return code;
}

int resize(int fd, off_t size) {
  const Call call("ftruncate", path_of(fd));
  if (call.fails()) return -1;
  const int code = result(syscall(SYS_ftruncate, fd, size));
  if (code == 0 && call.logs())
    log_change(FaultChange::kTruncate, inode_of(fd), size, path_of(fd), "", 0);
  return code;
}

ssize_t write_at(const char* name, int fd, const void* data, std::size_t size,
                 const off_t* offset) {
  if (!watching)
    return offset == nullptr ? syscall(SYS_write, fd, data, size)
                             : syscall(SYS_pwrite64, fd, data, size, *offset);
  const Call call(name, path_of(fd));
  if (call.fails()) return -1;
  const std::size_t part = call.allowed(size);
  const long written = offset == nullptr ? syscall(SYS_write, fd, data, part)
                                         : syscall(SYS_pwrite64, fd, data, part, *offset);
  if (written > 0 && call.logs()) {
    const std::int64_t begin =
        offset == nullptr ? syscall(SYS_lseek, fd, 0, SEEK_CUR) - written : *offset;
    log_change(FaultChange::kWrite, inode_of(fd), begin, path_of(fd), data,
               static_cast<std::size_t>(written));
  }
  return written;
}

}  // namespace

extern "C" {

// glibc's own, under the names that it keeps for such libraries.
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

static char* copy_of(const char* text, size_t size) {
  auto* copy = static_cast<char*>(__libc_malloc(size + 1));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, text, size);
  copy[size] = 0;
  return copy;
}

void* malloc(size_t size) {
  return out_of_memory(__builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  return out_of_memory(__builtin_return_address(0)) ? nullptr : __libc_calloc(n, size);
}
void* realloc(void* old, size_t size) {
  return out_of_memory(__builtin_return_address(0)) ? nullptr : __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return out_of_memory(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
}
/// glibc's own would call malloc from glibc, and the library that asked would not be known: HDF5,
/// which does not look at the answer, would be ended by a signal.
char* strndup(const char* text, size_t most) noexcept {
  const size_t size = ::strnlen(text, most);
  return out_of_memory(__builtin_return_address(0)) ? nullptr : copy_of(text, size);
}
char* strdup(const char* text) noexcept {
  return out_of_memory(__builtin_return_address(0)) ? nullptr : copy_of(text, std::strlen(text));
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  void* found =
      out_of_memory(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}

void fault_arm_memory(long at, const char* spared) {
  spared_begin = spared_end = 0;
  const auto find = [](dl_phdr_info* library, size_t, void* name) {
    if (std::strstr(library->dlpi_name, static_cast<const char*>(name)) == nullptr) return 0;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const auto& part = library->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      spared_begin = library->dlpi_addr + part.p_vaddr;
      spared_end = spared_begin + part.p_memsz;
    }
    return 1;
  };
  if (*spared != 0) ::dl_iterate_phdr(find, const_cast<char*>(spared));
  allocations = 0;
  failing_allocation = at;
}
long fault_disarm_memory() {
  failing_allocation = 0;
  return allocations;
}

void fault_arm(const char* folder, const char* calls, long at, int action, int repeat) {
  const std::lock_guard lock(mutex);
  plan.folder = folder;
  plan.calls = *calls == 0 ? "" : "," + std::string(calls) + ",";
  plan.at = at;
  plan.action = action;
  plan.repeat = repeat != 0;
  count = 0;
  watching = !plan.folder.empty();
}

long fault_disarm() {
  watching = false;
  return count;
}

int open(const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_at(AT_FDCWD, name, flags, mode);
}
int open64(const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_at(AT_FDCWD, name, flags, mode);
}
int openat(int folder, const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_at(folder, name, flags, mode);
}
ssize_t write(int fd, const void* data, size_t size) {
  return write_at("write", fd, data, size, nullptr);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return write_at("write", fd, data, size, &offset);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return write_at("write", fd, data, size, &offset);
}
int fsync(int fd) { return sync("fsync", fd); }
int fdatasync(int fd) { return sync("fsync", fd); }
int ftruncate(int fd, off_t size) noexcept { return resize(fd, size); }
int ftruncate64(int fd, off64_t size) noexcept { return resize(fd, size); }
int fallocate(int fd, int mode, off_t offset, off_t size) {
  const Call call("fallocate", path_of(fd));
  if (call.fails()) return -1;
  struct stat before {};
  ::fstat(fd, &before);
  const int code = result(syscall(SYS_fallocate, fd, mode, offset, size));
  if (code == 0 && mode == 0 && call.logs() && offset + size > before.st_size)
    log_change(FaultChange::kTruncate, inode_of(fd), offset + size, path_of(fd), "", 0);
  return code;
}
int fallocate64(int fd, int mode, off64_t offset, off64_t size) {
  return fallocate(fd, mode, offset, size);
}
/// Fails only after the descriptor is gone, as Linux's does.
int close(int fd) {
  if (!watching) return result(syscall(SYS_close, fd));
  const Call call("close", path_of(fd));
  const int code = result(syscall(SYS_close, fd));
  return call.fails() ? -1 : code;
}
int rename(const char* from, const char* to) noexcept {
  return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return rename_at(from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  return rename_at(from_folder, from, to_folder, to, flags);
}
int unlink(const char* name) noexcept { return remove_at(AT_FDCWD, name, 0); }
int unlinkat(int folder, const char* name, int flags) noexcept {
  return remove_at(folder, name, flags);
}
int rmdir(const char* name) noexcept { return remove_at(AT_FDCWD, name, AT_REMOVEDIR); }
int remove(const char* name) noexcept {
  const int code = remove_at(AT_FDCWD, name, 0);
  return code != 0 && errno == EISDIR ? remove_at(AT_FDCWD, name, AT_REMOVEDIR) : code;
}
int mkdir(const char* name, mode_t mode) noexcept {
  const std::string path = absolute(AT_FDCWD, name);
  const Call call("mkdir", path);
  if (call.fails()) return -1;
  const int code = result(syscall(SYS_mkdirat, AT_FDCWD, name, mode));
  if (code == 0 && call.logs())
    log_change(FaultChange::kMakeFolder, inode_at(path), 0, path, "", 0);
  return code;
}
int symlink(const char* target, const char* name) noexcept {
  const std::string path = absolute(AT_FDCWD, name);
  const Call call("symlink", path);
  if (call.fails()) return -1;
  const int code = result(syscall(SYS_symlinkat, target, AT_FDCWD, name));
  if (code == 0 && call.logs())
    log_change(FaultChange::kLink, inode_at(path), 0, path, target, std::strlen(target));
  return code;
}
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  if (watching && fd >= 0) {
    const Call call("mmap", path_of(fd));
    if (call.fails()) return MAP_FAILED;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): every system call returns a number
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}
void* mmap64(void* address, size_t size, int protection, int flags, int fd,
             off64_t offset) noexcept {
  return mmap(address, size, protection, flags, fd, offset);
}

}  // extern "C"

namespace {

void raise_what(const char* variable) {
  if (const char* number = std::getenv(variable)) std::raise(std::atoi(number));
}
__attribute__((constructor)) void before_main() { raise_what("OLMO_SIGNAL_BEFORE_MAIN"); }
__attribute__((destructor)) void after_main() { raise_what("OLMO_SIGNAL_AFTER_MAIN"); }

}  // namespace
