#include "core/bus_error.h"

#include <array>
#include <atomic>
#include <charconv>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"

namespace olmo {
namespace {

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
  MapLines() : fd_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~MapLines() {
    if (fd_ >= 0) ::close(fd_);
  }
  MapLines(const MapLines&) = delete;
  MapLines& operator=(const MapLines&) = delete;

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
      const ssize_t got = fd_ < 0 ? 0 : ::read(fd_, block_.data(), block_.size());
      if (got <= 0) return 0;
      at_ = 0;
      end_ = static_cast<std::size_t>(got);
    }
    return block_[at_++];
  }

  int fd_;
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

}  // namespace

void install_bus_error_handler() {
  static const int kOnce = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;  // siglongjmp leaves the handler
    return ::sigaction(SIGBUS, &action, nullptr);
  }();
  (void)kOnce;
}

void copy_mapped(const MappedFile& file, std::uint64_t offset, std::span<std::byte> into) {
  OLMO_CHECK(offset <= file.bytes().size() && into.size() <= file.bytes().size() - offset);
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
