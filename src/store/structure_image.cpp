#include "store/structure_image.h"

#include <algorithm>
#include <cstring>

namespace olmo::store {
namespace {

constexpr std::uint64_t kPage = 4096;

/// Calls `part(page, offset in the page, offset in the range, length)` for each page of a range.
template <typename Part>
void for_each_page(std::uint64_t offset, std::uint64_t size, const Part& part) {
  for (std::uint64_t done = 0; done < size;) {
    const std::uint64_t within = (offset + done) % kPage;
    const std::uint64_t length = std::min(kPage - within, size - done);
    part((offset + done) / kPage, within, done, length);
    done += length;
  }
}

}  // namespace

void StructureImage::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  for_each_page(offset, bytes.size(), [&](auto page, auto within, auto done, auto length) {
    auto& content = pages_[page];
    content.resize(kPage);
    std::memcpy(content.data() + within, bytes.data() + done, length);
  });
  size_ = std::max(size_, offset + bytes.size());
}

void StructureImage::read(std::uint64_t offset, std::span<std::byte> into) const {
  for_each_page(offset, into.size(), [&](auto page, auto within, auto done, auto length) {
    const auto found = pages_.find(page);
    if (found == pages_.end()) {
      std::memset(into.data() + done, 0, length);
    } else {
      std::memcpy(into.data() + done, found->second.data() + within, length);
    }
  });
}

void StructureImage::clear() {
  pages_.clear();
  size_ = 0;
}

}  // namespace olmo::store
