// TensorBoard's event files: records of TensorFlow's TFRecord format (a length of 8 bytes, its
// checksum, the data, their checksum), each an Event of tensorflow/core/util/event.proto. The
// numbers of the fields that are written or read.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/crc32.h"
#include "core/files/little_endian.h"

namespace olmo::event_file {

inline constexpr std::size_t kLengthBytes = 8, kChecksumBytes = 4;

namespace event {
enum : std::uint32_t { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5 };
}
inline constexpr std::uint32_t kValueOfSummary = 1;
namespace value {
enum : std::uint32_t { kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9 };
}
namespace tensor {  // TensorProto
enum : std::uint32_t {
  kType = 1,
  kShape = 2,
  kContent = 4,
  kFloats = 5,
  kDoubles = 6,
  kStringValue = 8
};
enum : std::int64_t { kFloat = 1, kDouble = 2, kString = 7 };  // its types
}  // namespace tensor
inline constexpr std::uint32_t kDimOfShape = 2, kSizeOfDim = 1;

/// Turned and shifted, since a sum over bytes that hold their own sum says little.
inline std::uint32_t checksum(std::string_view bytes) {
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(bytes)));
  return ((sum >> 15) | (sum << 17)) + 0xA282EAD8;
}

inline std::string record_of(std::string_view data) {
  std::string record;
  append_little_endian(record, data.size(), kLengthBytes);
  append_little_endian(record, checksum(record), kChecksumBytes);
  record += data;
  append_little_endian(record, checksum(data), kChecksumBytes);
  return record;
}

}  // namespace olmo::event_file
