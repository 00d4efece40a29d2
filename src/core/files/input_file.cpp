#include "core/files/input_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files/descriptor.h"
#include "core/files/unfinished_output.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"

namespace olmo {
namespace {

constexpr int kPatienceMs = 2000;

[[noreturn]] void fail_reading(const std::filesystem::path& path, const char* what) {
  throw Error(ErrorKind::kInput, path.string() + ": " + what + ": " + std::strerror(errno));
}

/// The system takes a zero byte for the end of a name, and would open another file.
void refuse_zero_byte(const std::filesystem::path& path) {
  if (path.native().find('\0') == std::string::npos) return;
  throw Error(ErrorKind::kInput,
              safe_line(path.string()) + ": names no file, as it holds a zero byte");
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

constexpr char kWhy[] =
    " can no longer be read: the file was cut while it was in use, or its disk fails";

/// Where copy_mapped() of this thread is to go on; a handler can reach nothing but a global.
thread_local sigjmp_buf* volatile t_way_out = nullptr;

/// In a handler only calls that the standard names as safe may be made: no memory, no streams.
void say(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

/// A line of /proc/self/maps, read in pieces: `first-last mode offset device inode   path`.
class MapLines {
 public:
  MapLines() : file_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}

  /// False at the end. Of a longer line the first part.
  bool next(std::string_view& line) {
    std::size_t length = 0;
    for (char c; (c = read_char()) != 0;) {
      if (c == '\n') {
        line = {line_.data(), length};
        return true;
      }
      if (length < line_.size()) line_[length++] = c;
    }
    return false;
  }

 private:
  char read_char() {
    if (at_ == end_) {
      const ssize_t got =
          file_.is_open() ? ::read(file_.number(), block_.data(), block_.size()) : 0;
      if (got <= 0) return 0;
      at_ = 0;
      end_ = static_cast<std::size_t>(got);
    }
    return block_[at_++];
  }

  Descriptor file_;
  std::array<char, 4096> block_{};
  std::array<char, 4352> line_{};
  std::size_t at_ = 0, end_ = 0;
};

std::uint64_t hex(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return number;
}

/// Names the file that is mapped at `address` and the place in it; false if none is.
bool name_file(std::uint64_t address) {
  MapLines lines;
  for (std::string_view line; lines.next(line);) {
    const auto dash = line.find('-'), space = line.find(' '), path = line.find('/');
    if (dash > space || space == line.npos || path == line.npos) continue;
    const auto first = hex(line.substr(0, dash));
    if (address < first || address >= hex(line.substr(dash + 1, space - dash - 1))) continue;
    std::array<char, 24> digits{};
    const auto offset = hex(line.substr(line.find(' ', space + 1) + 1)) + address - first;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), offset).ptr;
    say("error: ");
    say(line.substr(path));
    say(": byte ");
    say({digits.data(), static_cast<std::size_t>(end - digits.data())});
    return true;
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  if (t_way_out != nullptr) siglongjmp(*t_way_out, 1);
  if (name_file(reinterpret_cast<std::uint64_t>(info->si_addr))) {
    say(kWhy);
    say("\n");
    ::_exit(static_cast<int>(ErrorKind::kInput));
  }
  std::signal(signal, SIG_DFL);  // no file: a fault of ours, which happens again on return
}

/// Once for the process.
void install_bus_error_handler() {
  static const int kOnce = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;  // siglongjmp leaves the handler
    return ::sigaction(SIGBUS, &action, nullptr);
  }();
  (void)kOnce;
}

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// Advice on the bytes [begin, end) of the map at `base`, whole pages.
void advise(const std::byte* base, std::size_t begin, std::size_t end, int advice) {
  if (begin < end) ::madvise(const_cast<std::byte*>(base) + begin, end - begin, advice);
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path, Pipes pipes) : path_(path) {
  const auto check = [&](const struct stat& status) {
    pipe_ = S_ISFIFO(status.st_mode);
    if (S_ISREG(status.st_mode) || (pipe_ && pipes == Pipes::kRead)) return;
    if (fd_ >= 0) ::close(fd_);
    throw Error(ErrorKind::kInput,
                path_.string() + ": is not a regular file but " + kind_of(status.st_mode));
  };
  refuse_zero_byte(path);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail_reading(path_, "cannot be opened for reading");
  check(status);  // opening a device may do something

  // O_NONBLOCK: opening a pipe must not wait for its writer. O_NOCTTY: a terminal must not become
  // ours.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) fail_reading(path_, "cannot be opened for reading");
  check(status);  // it may be another one by now
  device_ = status.st_dev;
  inode_ = status.st_ino;
  if (!pipe_) size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::wait_for_writer() const {
  struct pollfd waiting {
    fd_, POLLIN, 0
  };
  for (int patience = kPatienceMs;; patience = -1) {
    const int ready = ::poll(&waiting, 1, patience);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail_reading(path_, "cannot be waited for");
    if (ready == 0) log_line(path_.string() + ": waiting for what a program writes to it");
  }
}

std::size_t InputFile::read(std::span<char> out) {
  end_if_asked();
  for (;;) {
    const ssize_t count = ::read(fd_, out.data(), out.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN && pipe_) {
      wait_for_writer();
      continue;
    }
    if (count < 0) fail_reading(path_, "cannot be read");
    if (count == 0 && pipe_ && !gave_bytes_ && !out.empty())
      throw Error(ErrorKind::kInput, path_.string() + ": is a pipe that no program writes to");
    gave_bytes_ = gave_bytes_ || count > 0;
    return static_cast<std::size_t>(count);
  }
}

std::optional<struct stat> status_of(const std::filesystem::path& path) {
  refuse_zero_byte(path);
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return status;
  if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return std::nullopt;
  fail_reading(path, "cannot be looked at");
}

bool is_there(const std::filesystem::path& path) { return status_of(path).has_value(); }

void check_regular_file(const std::filesystem::path& path) { const InputFile file(path); }

std::string read_file(const std::filesystem::path& path) {
  InputFile file(path);  // not a map: a file that is cut meanwhile would end the process
  std::string bytes(file.size(), '\0');
  std::size_t size = 0;
  while (const std::size_t more = file.read(std::span(bytes).subspan(size))) size += more;
  bytes.resize(size);
  return bytes;
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path), data_(nullptr, Unmap{0}) {
  install_bus_error_handler();
  const InputFile file(path);
  device_ = file.device();
  inode_ = file.inode();
  const auto size = static_cast<std::size_t>(file.size());
  if (size == 0) return;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (data == MAP_FAILED) fail_reading(path, "cannot be memory-mapped");
  data_ = {static_cast<const std::byte*>(data), Unmap{size}};
}

void MappedFile::Unmap::operator()(const std::byte* data) const noexcept {
  ::munmap(const_cast<std::byte*>(data), size);
}

void MappedFile::prefetch(std::span<const std::byte> part) const noexcept {
  const auto begin = static_cast<std::size_t>(part.data() - data_.get());
  advise(data_.get(), begin / page_size() * page_size(), begin + part.size(), MADV_WILLNEED);
}

void MappedFile::drop(std::span<const std::byte> part) const noexcept {
  const auto begin = static_cast<std::size_t>(part.data() - data_.get());
  advise(data_.get(), (begin + page_size() - 1) / page_size() * page_size(),
         (begin + part.size()) / page_size() * page_size(), MADV_DONTNEED);
}

void MappedFile::check_not_cut() const {
  // The file is asked by its name, as thousands of token files cannot all be kept open, and only
  // for what this machine knows of it: that is what it has read. A file that has another name or
  // none by now is whole in the map.
  struct statx now {};
  if (::statx(AT_FDCWD, path_.c_str(), AT_STATX_DONT_SYNC, STATX_SIZE | STATX_INO, &now) != 0 ||
      now.stx_ino != inode_ || makedev(now.stx_dev_major, now.stx_dev_minor) != device_ ||
      now.stx_size >= bytes().size())
    return;
  throw Error(ErrorKind::kInput, path_.string() + ": the file was cut while it was in use, from " +
                                     std::to_string(bytes().size()) + " bytes to " +
                                     std::to_string(now.stx_size));
}

void MappedFile::expect_random_access() const noexcept {
  advise(data_.get(), 0, bytes().size(), MADV_RANDOM);
}

void copy_mapped(const MappedFile& file, std::uint64_t offset, std::span<std::byte> into) {
  OLMO_CHECK(offset <= file.bytes().size() && into.size() <= file.bytes().size() - offset);
  if (into.empty()) return;
  sigjmp_buf way_out;
  if (sigsetjmp(way_out, 0) == 0) {
    t_way_out = &way_out;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the copy stays between the two
    std::memcpy(into.data(), file.bytes().data() + offset, into.size());
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_way_out = nullptr;
    return;
  }
  t_way_out = nullptr;
  throw Error(ErrorKind::kInput, file.path().string() + ": a part of bytes " +
                                     std::to_string(offset) + " to " +
                                     std::to_string(offset + into.size()) + kWhy);
}

}  // namespace olmo
