#include "store/checkpoint/raw_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/compute/parallel.h"
#include "core/error.h"
#include "core/files/unfinished_output.h"
#include "core/process/terminal.h"

namespace olmo::store {
namespace {

// Stays in the second-level cache between reading and hashing.
constexpr std::size_t kHashBlock = 1U << 20U;
constexpr std::uint64_t kBlock = 16U << 20U;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::kFailure, path.string() + ": " + what + ": " + std::strerror(errno));
}

std::string amount(std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

/// A part of a range, at most kBlock long. Direct: offset and size are multiples of a page.
struct Piece {
  std::uint64_t offset = 0;
  const std::byte* data = nullptr;
  std::uint64_t size = 0;
  bool direct = false;
};

std::vector<Piece> cut(std::span<const RawRange> ranges, bool direct_allowed) {
  std::vector<Piece> pieces;
  for (const RawRange& range : ranges) {
    const std::uint64_t size = range.bytes.size();
    const bool direct = direct_allowed && range.offset % kPage == 0;
    const std::uint64_t whole = direct ? size / kPage * kPage : 0;
    for (std::uint64_t at = 0; at < size;) {
      const std::uint64_t end = at < whole ? whole : size;
      const std::uint64_t length = std::min(kBlock, end - at);
      pieces.push_back({range.offset + at, range.bytes.data() + at, length, at < whole});
      at += length;
    }
  }
  return pieces;
}

/// `direct` < 0: through the page cache. A file system may also refuse a single direct write (a
/// coarser alignment): the rest of that piece then goes through the cache.
void write_all(int direct, int buffered, const std::byte* data, std::uint64_t size,
               std::uint64_t offset, const std::filesystem::path& path) {
  while (size > 0) {
    const ssize_t written =
        ::pwrite(direct >= 0 ? direct : buffered, data, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL && direct >= 0) {
      direct = -1;
      continue;
    }
    if (written <= 0) fail(path, "cannot be written");
    data += written;
    size -= static_cast<std::uint64_t>(written);
    offset += static_cast<std::uint64_t>(written);
  }
}

/// Memory whose address direct writes accept.
class Staging {
 public:
  Staging() = default;
  ~Staging() {
    if (memory_ != nullptr) ::munmap(memory_, kBlock);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::byte* fill(const std::byte* data, std::uint64_t size) {
    if (memory_ == nullptr) {
      void* memory =
          ::mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED)
        throw Error(ErrorKind::kFailure, "checkpoint: no memory for a block of 16 MB");
      ::madvise(memory, kBlock, MADV_HUGEPAGE);
      memory_ = static_cast<std::byte*>(memory);
    }
    std::memcpy(memory_, data, size);
    return memory_;
  }

 private:
  std::byte* memory_ = nullptr;
};

/// Runs `work` on `threads` threads and rethrows the first error; `stop` is set as soon as one
/// fails.
class Workers {
 public:
  template <typename Work>
  void start(int threads, Work work) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, work] {
        try {
          work();
        } catch (...) {  // carried to the caller's thread
          const std::lock_guard lock(mutex_);
          if (!error_) error_ = std::current_exception();
          stop_ = true;
        }
      });
    }
  }
  [[nodiscard]] bool stopped() const { return stop_; }
  void join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    if (error_) std::rethrow_exception(error_);
  }
  ~Workers() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
  }

 private:
  std::vector<std::thread> threads_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
};

/// Ranges on their way into a file.
class RangeWriter {
 public:
  RangeWriter(const std::filesystem::path& path, std::span<const RawRange> ranges)
      : file_(path), pieces_(cut(ranges, file_.direct())) {}

  [[nodiscard]] bool direct() const { return std::ranges::any_of(pieces_, &Piece::direct); }

  /// Writes in `threads` of `workers`, which end before this object.
  void start(Workers& workers, int threads) {
    workers.start(threads, [this, &workers] {
      Staging staging;
      for (std::size_t i; !workers.stopped() && (i = next_++) < pieces_.size();)
        write(pieces_[i], staging);
    });
  }

 private:
  void write(const Piece& piece, Staging& staging) const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(piece.data) % kPage == 0;
    const std::byte* data =
        piece.direct && !aligned ? staging.fill(piece.data, piece.size) : piece.data;
    file_.write(piece.offset, {data, static_cast<std::size_t>(piece.size)});
  }

  RawWriter file_;
  std::vector<Piece> pieces_;
  std::atomic<std::size_t> next_{0};
};

}  // namespace

void RawReader::read(std::uint64_t offset, std::span<std::byte> out) const {
  end_if_asked();
  while (!out.empty()) {
    const ssize_t got =
        ::pread(file_.descriptor(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Error(ErrorKind::kDamaged, file_.path().string() + ": cannot be read at byte " +
                                           std::to_string(offset) + ": " + std::strerror(errno));
    }
    if (got == 0) {
      throw Error(ErrorKind::kDamaged, file_.path().string() + ": ends at byte " +
                                           std::to_string(offset) + ", expected " +
                                           std::to_string(out.size()) + " bytes more");
    }
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void RawReader::read_and_hash(std::uint64_t offset, std::span<std::byte> out, Sha256& hash) const {
  while (!out.empty()) {
    const auto block = out.first(std::min(kHashBlock, out.size()));
    read(offset, block);
    hash.update(block.data(), block.size());
    out = out.subspan(block.size());
    offset += block.size();
  }
}

Digest RawReader::read_and_hash(std::uint64_t offset, std::span<std::byte> out) const {
  Sha256 hash;
  read_and_hash(offset, out, hash);
  return hash.finish();
}

void RawReader::hash(std::uint64_t offset, std::uint64_t size, Sha256& hash) const {
  std::vector<std::byte> buffer(
      static_cast<std::size_t>(std::min<std::uint64_t>(kHashBlock, size)));
  while (size > 0) {
    const auto block = std::span(buffer).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(kHashBlock, size)));
    read(offset, block);
    hash.update(block.data(), block.size());
    size -= block.size();
    offset += block.size();
  }
}

void check_space(const std::filesystem::path& folder, std::uint64_t bytes) {
  // Beyond its limit a process gets a deadly signal, not an error.
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {
    throw Error(ErrorKind::kFailure, folder.string() + ": needs a file of " + amount(bytes) +
                                         ", this process may write " + amount(limit.rlim_cur) +
                                         " (ulimit -f)");
  }
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) fail(folder, "the free space of the disk is unknown");
  const std::uint64_t free = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  if (space.f_blocks != 0 && free < bytes) {  // some network file systems state nothing
    throw Error(ErrorKind::kFailure, folder.string() + ": the disk cannot hold " + amount(bytes) +
                                         ", " + amount(free) + " are free");
  }
}

void reserve_space(const std::filesystem::path& path, std::uint64_t bytes) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file.is_open()) fail(path, "cannot be created");
  if (::fallocate(file.number(), 0, 0, static_cast<off_t>(bytes)) == 0) return;
  const bool unsupported = errno == EOPNOTSUPP || errno == ENOSYS;  // then writing will tell
  if (unsupported && ::ftruncate(file.number(), static_cast<off_t>(bytes)) == 0) return;
  fail(path, "cannot be given " + amount(bytes));
}

RawWriter::RawWriter(const std::filesystem::path& path)
    : path_(path), buffered_(::open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
  if (!buffered_.is_open()) fail(path, "cannot be opened for writing");
  // Some file systems refuse.
  direct_ = Descriptor(::open(path.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
}

void RawWriter::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  end_if_asked();
  const bool aligned =
      offset % kPage == 0 && reinterpret_cast<std::uintptr_t>(bytes.data()) % kPage == 0;
  const auto whole = aligned && direct() ? bytes.size() / kPage * kPage : 0;
  write_all(direct_.number(), buffered_.number(), bytes.data(), whole, offset, path_);
  write_all(-1, buffered_.number(), bytes.data() + whole, bytes.size() - whole, offset + whole,
            path_);
}

void RawWriter::sync() const {
  if (::fsync(buffered_.number()) != 0) fail(path_, "cannot be synced");
}

bool write_ranges(const std::filesystem::path& path, std::span<const RawRange> ranges,
                  int threads) {
  RangeWriter writer(path, ranges);
  Workers workers;
  writer.start(workers, threads);
  workers.join();
  return writer.direct();
}

RawWriteResult write_and_hash(const std::filesystem::path& path, std::span<const RawRange> ranges,
                              int hash_threads) {
  RangeWriter writer(path, ranges);
  RawWriteResult result;
  result.digests.resize(ranges.size());
  result.direct = writer.direct();
  const auto by_size =
      largest_first(ranges.size(), [&](std::size_t i) { return ranges[i].bytes.size(); });

  std::atomic<std::size_t> next_range{0};
  Workers workers;
  workers.start(std::max(1, hash_threads), [&] {
    for (std::size_t i; !workers.stopped() && (i = next_range++) < by_size.size();) {
      result.digests[by_size[i]] = sha256(ranges[by_size[i]].bytes);
    }
  });
  writer.start(workers, kWriters);
  workers.join();
  return result;
}

}  // namespace olmo::store
