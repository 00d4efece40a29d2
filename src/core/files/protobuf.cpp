#include "core/files/protobuf.h"

#include <bit>

#include "core/error.h"
#include "core/files/little_endian.h"

namespace olmo {
namespace {

enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

[[noreturn]] void refuse() { throw Error(ErrorKind::kInput, "is no message of protocol buffers"); }

}  // namespace

void ProtobufMessage::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
  bytes_ += static_cast<char>(value);
}

void ProtobufMessage::key(std::uint32_t field, std::uint32_t type) { varint(field << 3 | type); }

ProtobufMessage& ProtobufMessage::integer(std::uint32_t field, std::int64_t value) {
  key(field, kVarint);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::real(std::uint32_t field, double value) {
  key(field, kFixed64);
  append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value), 8);
  return *this;
}

ProtobufMessage& ProtobufMessage::single(std::uint32_t field, float value) {
  key(field, kFixed32);
  append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value), 4);
  return *this;
}

ProtobufMessage& ProtobufMessage::text(std::uint32_t field, std::string_view bytes) {
  key(field, kLengthDelimited);
  varint(bytes.size());
  bytes_ += bytes;
  return *this;
}

std::uint64_t ProtobufFields::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1).front());
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  refuse();
}

std::string_view ProtobufFields::take(std::uint64_t count) {
  if (count > rest_.size()) refuse();
  const auto taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

bool ProtobufFields::next() {
  if (rest_.empty()) return false;
  const std::uint64_t key = varint();
  field_ = key >> 3;
  type_ = static_cast<std::uint32_t>(key & 7);
  number_ = 0;
  bytes_ = {};
  switch (type_) {
    case kVarint:
      number_ = varint();
      return true;
    case kFixed64:
      number_ = little_endian(take(8));
      return true;
    case kFixed32:
      number_ = little_endian(take(4));
      return true;
    case kLengthDelimited:
      bytes_ = take(varint());
      return true;
    default:
      refuse();
  }
}

std::optional<std::int64_t> ProtobufFields::integer(std::uint32_t field) const {
  if (field_ != field || type_ != kVarint) return std::nullopt;
  return static_cast<std::int64_t>(number_);
}

std::optional<double> ProtobufFields::real(std::uint32_t field) const {
  if (field_ != field || type_ != kFixed64) return std::nullopt;
  return std::bit_cast<double>(number_);
}

std::optional<float> ProtobufFields::single(std::uint32_t field) const {
  if (field_ != field || type_ != kFixed32) return std::nullopt;
  return std::bit_cast<float>(static_cast<std::uint32_t>(number_));
}

std::optional<std::string_view> ProtobufFields::text(std::uint32_t field) const {
  if (field_ != field || type_ != kLengthDelimited) return std::nullopt;
  return bytes_;
}

}  // namespace olmo
