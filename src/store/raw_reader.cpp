#include "store/raw_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

#include "core/error.h"

namespace olmo::store {
namespace {

constexpr std::size_t kBlock =
    1U << 20U;  // stays in the second-level cache between reading and hashing

}  // namespace

void RawReader::read(std::uint64_t offset, std::span<std::byte> out) const {
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

Digest RawReader::read_and_hash(std::uint64_t offset, std::span<std::byte> out) const {
  Sha256 hash;
  while (!out.empty()) {
    const auto block = out.first(std::min(kBlock, out.size()));
    read(offset, block);
    hash.update(block.data(), block.size());
    out = out.subspan(block.size());
    offset += block.size();
  }
  return hash.finish();
}

void RawReader::hash(std::uint64_t offset, std::uint64_t size, Sha256& hash) const {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, size)));
  while (size > 0) {
    const auto block =
        std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, size)));
    read(offset, block);
    hash.update(block.data(), block.size());
    size -= block.size();
    offset += block.size();
  }
}

}  // namespace olmo::store
