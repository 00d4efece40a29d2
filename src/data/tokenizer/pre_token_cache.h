#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace olmo::data {

/// A pre-token of at most kMaxSize bytes as two words, zero-padded, its size in the last byte.
struct PreTokenKey {
  static constexpr std::size_t kMaxSize = 15;
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  /// `readable` bytes may be read at `p`, size <= kMaxSize of them are the pre-token.
  static PreTokenKey of(const char* p, std::size_t size, std::size_t readable);
  [[nodiscard]] std::uint64_t hash() const {
    const auto product = static_cast<unsigned __int128>(low ^ 0x9E3779B97F4A7C15ULL) *
                         (high ^ 0xD6E8FEB86659FD93ULL);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
};

/// Remembers the ids of short pre-tokens. Fixed size, two entries to a cache line; a key lives in
/// its own line or, if that was full, in the neighbour, where the younger entry gives way. It only
/// saves time: what it forgets is encoded again. One thread uses it at a time.
class PreTokenCache {
 public:
  static constexpr std::size_t kMaxIds = 3;
  struct Entry {
    std::uint64_t low, high;
    std::uint32_t count;  ///< 0: unused
    std::array<std::uint32_t, kMaxIds> ids;
  };

  PreTokenCache();

  [[nodiscard]] std::size_t line_of(const PreTokenKey& key) const {
    return static_cast<std::size_t>(key.hash() >> (64 - kLineBits));
  }
  void prefetch(std::size_t line) const { __builtin_prefetch(&lines_[line]); }
  [[nodiscard]] const Entry* find(std::size_t line, const PreTokenKey& key) const {
    const Entry* entry = find_in(line, key);
    return entry != nullptr ? entry : find_in(line ^ 1, key);
  }
  /// `ids` holds 1 to kMaxIds ids.
  void insert(const PreTokenKey& key, std::span<const std::uint32_t> ids);

 private:
  [[nodiscard]] const Entry* find_in(std::size_t line, const PreTokenKey& key) const {
    const Entry* entries = lines_[line].data();
    const bool second = entries[1].low == key.low && entries[1].high == key.high;
    const Entry* entry = entries + (second ? 1 : 0);
    return entry->low == key.low && entry->high == key.high ? entry : nullptr;
  }

  static constexpr int kLineBits = 17;
  static constexpr std::size_t kLines = std::size_t{1} << kLineBits;
  using Line = std::array<Entry, 2>;
  static_assert(sizeof(Line) == 64);
  struct Release {
    void operator()(Line* lines) const noexcept;
  };
  std::unique_ptr<Line[], Release> lines_;
};

/// Remembers the ids of pre-tokens too long for the other cache, up to a size; once full it begins
/// anew.
class LongPreTokenCache {
 public:
  static constexpr std::size_t kMaxSize = 128;  ///< bytes of a pre-token that is worth remembering

  [[nodiscard]] const std::vector<std::uint32_t>* find(std::string_view bytes) const {
    const auto entry = ids_.find(bytes);
    return entry == ids_.end() ? nullptr : &entry->second;
  }
  void insert(std::string_view bytes, const std::vector<std::uint32_t>& ids);

 private:
  static constexpr std::size_t kMaxEntries = 1U << 15;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view bytes) const {
      return std::hash<std::string_view>()(bytes);
    }
  };
  std::unordered_map<std::string, std::vector<std::uint32_t>, Hash, std::equal_to<>> ids_;
};

namespace key_masks {
consteval std::array<std::array<std::uint64_t, 2>, 16> make() {
  std::array<std::array<std::uint64_t, 2>, 16> masks{};
  for (std::size_t size = 0; size < 16; ++size) {
    for (std::size_t i = 0; i < size; ++i)
      masks[size][i / 8] |= std::uint64_t{0xFF} << (8 * (i % 8));
  }
  return masks;
}
inline constexpr auto kMasks = make();
}  // namespace key_masks

inline PreTokenKey PreTokenKey::of(const char* p, std::size_t size, std::size_t readable) {
  std::uint64_t words[2] = {0, 0};
  if (readable >= sizeof words) [[likely]] {
    std::memcpy(words, p, sizeof words);
  } else {
    std::memcpy(words, p, size);
  }
  const auto& mask = key_masks::kMasks[size];
  return {words[0] & mask[0], (words[1] & mask[1]) | static_cast<std::uint64_t>(size) << 56};
}

}  // namespace olmo::data
