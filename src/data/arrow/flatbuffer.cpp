#include "data/arrow/flatbuffer.h"

#include "core/error.h"

namespace olmo::data {

FlatTable::FlatTable(std::span<const std::byte> message, std::string_view origin)
    : message_(message), origin_(origin) {
  open(follow(0));
}

FlatTable FlatTable::sibling(std::size_t at) const {
  FlatTable other = *this;
  other.open(at);
  return other;
}

void FlatTable::open(std::size_t at) {
  at_ = at;
  const auto fields = static_cast<std::int64_t>(at) - read<std::int32_t>(at);
  if (fields < 0) fail();
  fields_ = static_cast<std::size_t>(fields);
  const std::size_t bytes = read<std::uint16_t>(fields_);
  need(fields_, bytes);
  count_ = bytes < 4 ? 0 : (bytes - 4) / 2;
}

void FlatTable::fail() const {
  throw Error(ErrorKind::kInput,
              std::string(origin_) +
                  ": its metadata is damaged: an offset leads out of a message of " +
                  std::to_string(message_.size()) + " bytes");
}

// Every offset of the message comes from a file that may be damaged or hostile, so every read
// passes here. Written as a subtraction, for at + bytes could wrap around.
void FlatTable::need(std::size_t at, std::size_t bytes) const {
  if (at > message_.size() || bytes > message_.size() - at) fail();
}

std::optional<std::size_t> FlatTable::place_of(std::size_t field) const {
  if (field >= count_) return std::nullopt;
  const std::size_t offset = read<std::uint16_t>(fields_ + 4 + 2 * field);
  if (offset == 0) return std::nullopt;
  return at_ + offset;
}

std::size_t FlatTable::follow(std::size_t at) const {
  const std::size_t to = at + read<std::uint32_t>(at);
  need(to, 4);
  return to;
}

std::optional<FlatTable> FlatTable::table(std::size_t field) const {
  const auto at = place_of(field);
  if (!at) return std::nullopt;
  return sibling(follow(*at));
}

FlatTable::Vector FlatTable::vector(std::size_t field, std::size_t element_size) const {
  const auto at = place_of(field);
  if (!at) return {};
  const std::size_t begin = follow(*at);
  const std::size_t count = read<std::uint32_t>(begin);
  need(begin + 4, count * element_size);
  return {.begin = begin + 4, .count = count};
}

std::string_view FlatTable::text(std::size_t field) const {
  const Vector bytes = vector(field, 1);
  return {reinterpret_cast<const char*>(message_.data()) + bytes.begin, bytes.count};
}

std::size_t FlatTable::size(std::size_t field) const { return vector(field, 0).count; }

FlatTable FlatTable::element(std::size_t field, std::size_t index) const {
  const Vector offsets = vector(field, 4);
  if (index >= offsets.count) fail();
  return sibling(follow(offsets.begin + 4 * index));
}

std::span<const std::byte> FlatTable::structs(std::size_t field, std::size_t struct_size) const {
  const Vector all = vector(field, struct_size);
  return message_.subspan(all.begin, all.count * struct_size);
}

}  // namespace olmo::data
