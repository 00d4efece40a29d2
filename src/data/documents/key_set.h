#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace olmo::data {

/// What stands for a text in a KeySet: the first 16 bytes of its SHA-256. Two texts with one key
/// are out of reach, by chance and by intent.
struct Key {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Key&, const Key&) = default;
};

Key key_of(std::string_view text);

/// A set of keys in 21 to 43 bytes each.
class KeySet {
 public:
  /// Whether the key is new.
  bool insert(const Key& key);
  [[nodiscard]] bool contains(const Key& key) const;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  /// Where the key is, or would go.
  [[nodiscard]] std::size_t slot_of(const Key& key) const;
  void grow();

  std::vector<Key> slots_;  ///< open addressing; a power of two of them
  std::size_t size_ = 0;
};

}  // namespace olmo::data
