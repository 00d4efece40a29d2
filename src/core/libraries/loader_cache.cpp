#include "core/libraries/loader_cache.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace olmo {
namespace {

constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";

/// Behind the magic, and before the entries.
struct Header {
  std::uint32_t entries;
  std::array<std::uint32_t, 6> others;
};

struct Entry {
  std::int32_t kind;
  std::uint32_t name, file;  ///< where their texts begin, counted from the magic
  std::uint32_t system;
  std::uint64_t processor;
};

/// Of a library of the C library's sixth version, for 64-bit programs.
#if defined(__aarch64__)
constexpr std::int32_t kKind = 0x0a03;
#else
constexpr std::int32_t kKind = 0x0303;
#endif

/// False if it does not lie within `bytes`.
template <class T>
bool copy_at(std::string_view bytes, std::size_t offset, T& value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof value) return false;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return true;
}

std::string_view text_at(std::string_view bytes, std::size_t offset) {
  if (offset >= bytes.size()) return {};
  const auto text = bytes.substr(offset);
  return text.substr(0, text.find('\0'));
}

}  // namespace

std::vector<std::filesystem::path> cached_libraries(const std::string& name,
                                                    const std::filesystem::path& cache) {
  std::ifstream in(cache, std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(in)), {});
  std::string_view bytes = file;
  bytes.remove_prefix(std::min(bytes.find(kMagic), bytes.size()));  // an older list may precede it
  std::vector<std::filesystem::path> found;
  Header header{};
  if (!copy_at(bytes, kMagic.size(), header)) return found;
  Entry entry{};
  for (std::size_t i = 0; i < header.entries; ++i) {
    if (!copy_at(bytes, kMagic.size() + sizeof header + i * sizeof entry, entry)) break;
    if (entry.kind == kKind && text_at(bytes, entry.name) == name)
      found.emplace_back(text_at(bytes, entry.file));
  }
  return found;
}

}  // namespace olmo
