#include "data/documents/key_set.h"

#include <cstring>
#include <utility>

#include "core/hash.h"

namespace olmo::data {
namespace {

constexpr std::size_t kFirstSlots = 1 << 10;
constexpr Key kEmpty{};

}  // namespace

Key key_of(std::string_view text) {
  const Digest digest = sha256(text);
  Key key;
  std::memcpy(&key.low, digest.bytes.data(), sizeof(key.low));
  std::memcpy(&key.high, digest.bytes.data() + sizeof(key.low), sizeof(key.high));
  return key;
}

std::size_t KeySet::slot_of(const Key& key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = key.low & mask;  // a digest's bits need no further mixing
  while (slots_[slot] != kEmpty && slots_[slot] != key) slot = (slot + 1) & mask;
  return slot;
}

void KeySet::grow() {
  std::vector<Key> before(slots_.empty() ? kFirstSlots : 2 * slots_.size());
  std::swap(before, slots_);
  for (const Key& key : before) {
    if (key != kEmpty) slots_[slot_of(key)] = key;
  }
}

bool KeySet::insert(const Key& key) {
  if (4 * (size_ + 1) > 3 * slots_.size()) grow();
  Key& slot = slots_[slot_of(key)];
  if (slot == key) return false;
  slot = key;
  ++size_;
  return true;
}

bool KeySet::contains(const Key& key) const {
  return !slots_.empty() && slots_[slot_of(key)] == key;
}

}  // namespace olmo::data
