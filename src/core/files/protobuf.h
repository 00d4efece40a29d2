// The few rules of protocol buffers' wire format that TensorBoard's event files and W&B's records
// need (https://protobuf.dev/programming-guides/encoding): messages are a few fields that never
// change, so no library is asked for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace olmo {

/// A message that is put together field by field.
class ProtobufMessage {
 public:
  ProtobufMessage& integer(std::uint32_t field, std::int64_t value);   ///< int32, int64, enum, bool
  ProtobufMessage& real(std::uint32_t field, double value);            ///< double
  ProtobufMessage& single(std::uint32_t field, float value);           ///< float
  ProtobufMessage& text(std::uint32_t field, std::string_view bytes);  ///< string, bytes
  ProtobufMessage& message(std::uint32_t field, const ProtobufMessage& inner) {
    return text(field, inner.bytes_);
  }

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void key(std::uint32_t field, std::uint32_t type);
  void varint(std::uint64_t value);

  std::string bytes_;
};

/// The fields of a message, one after the other.
class ProtobufFields {
 public:
  explicit ProtobufFields(std::string_view message) : rest_(message) {}

  /// False at the end. Throws Error(kInput) for bytes that are no message.
  bool next();

  /// The value of the present field, if it has that number and a type that can hold it.
  [[nodiscard]] std::optional<std::int64_t> integer(std::uint32_t field) const;
  [[nodiscard]] std::optional<double> real(std::uint32_t field) const;
  [[nodiscard]] std::optional<float> single(std::uint32_t field) const;
  [[nodiscard]] std::optional<std::string_view> text(std::uint32_t field) const;

 private:
  std::uint64_t varint();
  std::string_view take(std::uint64_t count);

  std::string_view rest_;
  std::uint64_t field_ = 0;
  std::uint32_t type_ = 0;
  std::uint64_t number_ = 0;  ///< of types that are one
  std::string_view bytes_;    ///< of the others
};

}  // namespace olmo
