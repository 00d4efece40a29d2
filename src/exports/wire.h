// The few rules of protocol buffers' wire format that event files and W&B's records need, and the
// checksums of both: messages are a few fields that never change, so no library is asked for them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace olmo::exports {

/// A message that is put together field by field: https://protobuf.dev/programming-guides/encoding.
class Message {
 public:
  Message& integer(std::uint32_t field, std::int64_t value);   ///< int32, int64, enum, bool
  Message& real(std::uint32_t field, double value);            ///< double
  Message& single(std::uint32_t field, float value);           ///< float
  Message& text(std::uint32_t field, std::string_view bytes);  ///< string, bytes
  Message& message(std::uint32_t field, const Message& inner) { return text(field, inner.bytes_); }

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void key(std::uint32_t field, std::uint32_t type);
  void varint(std::uint64_t value);

  std::string bytes_;
};

/// The lowest bytes of a number, the lowest first.
void append_little_endian(std::string& bytes, std::uint64_t value, int count);

/// A checksum of 32 bits with reflected input and output, as zlib's crc32 is.
class Crc32 {
 public:
  /// The polynomial with its bits turned round: kZlib, kCastagnoli.
  explicit Crc32(std::uint32_t polynomial);
  /// Of what was summed before (0: nothing), and then of `bytes`.
  [[nodiscard]] std::uint32_t sum(std::string_view bytes, std::uint32_t before = 0) const;

  static constexpr std::uint32_t kZlib = 0xEDB88320;
  static constexpr std::uint32_t kCastagnoli = 0x82F63B78;  ///< CRC-32C

 private:
  std::array<std::uint32_t, 256> table_{};
};

}  // namespace olmo::exports
