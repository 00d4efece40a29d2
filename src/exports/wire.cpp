#include "exports/wire.h"

#include <bit>

namespace olmo::exports {
namespace {

enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

}  // namespace

void append_little_endian(std::string& bytes, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i, value >>= 8) bytes += static_cast<char>(value & 0xFF);
}

void Message::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
  bytes_ += static_cast<char>(value);
}

void Message::key(std::uint32_t field, std::uint32_t type) { varint(field << 3 | type); }

Message& Message::integer(std::uint32_t field, std::int64_t value) {
  key(field, kVarint);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::real(std::uint32_t field, double value) {
  key(field, kFixed64);
  append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value), 8);
  return *this;
}

Message& Message::single(std::uint32_t field, float value) {
  key(field, kFixed32);
  append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value), 4);
  return *this;
}

Message& Message::text(std::uint32_t field, std::string_view bytes) {
  key(field, kLengthDelimited);
  varint(bytes.size());
  bytes_ += bytes;
  return *this;
}

Crc32::Crc32(std::uint32_t polynomial) {
  for (std::uint32_t i = 0; i < table_.size(); ++i) {
    std::uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? polynomial : 0);
    table_[i] = rest;
  }
}

std::uint32_t Crc32::sum(std::string_view bytes, std::uint32_t before) const {
  std::uint32_t rest = ~before;
  for (const char c : bytes)
    rest = (rest >> 8) ^ table_[(rest ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~rest;
}

}  // namespace olmo::exports
