// W&B's record of a run: a file of LevelDB's log format (blocks of 32 KiB, entries cut at their
// ends, each piece with a checksum, its length and which part of its entry it is), whose checksums
// are zlib's CRC-32, with a Record of wandb_internal.proto in each entry. The format is not
// documented; these are the fields that wandb 0.19 and 0.31 read and write.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/crc32.h"
#include "core/files/little_endian.h"

namespace olmo::wandb_format {

inline constexpr std::string_view kMagic = ":W&B";
inline constexpr std::size_t kFileHead = 7;
inline constexpr std::size_t kBlock = 32768, kPieceHead = 7;
enum Part : std::uint8_t { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

/// Where an export of ours tells machine and build among the settings, which they are none of.
inline constexpr char kOwnMachine[] = "olmo_harness";

namespace record {
enum : std::uint32_t {
  kNumber = 1,
  kHistory = 2,
  kSummary = 3,
  kConfig = 5,
  kRun = 17,
  kExit = 18,
  kHeader = 21,
  kFooter = 22,
  kEnvironment = 26
};
}
namespace run {
enum : std::uint32_t {
  kId = 1,
  kProject = 3,
  kConfig = 4,
  kName = 8,
  kTags = 10,
  kHost = 13,
  kStartTime = 17
};
}
inline constexpr std::uint32_t kExitCode = 1;
namespace environment {
enum : std::uint32_t { kOs = 1, kPython = 2, kHost = 12, kGpu = 18, kGpuCount = 19 };
}
namespace item {  // of config, history and summary; a value of history has one of several types
enum : std::uint32_t { kKey = 1, kNestedKey = 2, kInteger = 5, kNumber = 6, kText = 7, kJson = 16 };
inline constexpr std::uint32_t kInHistory = 1, kInUpdate = 1;
inline constexpr std::uint32_t kStepOfHistory = 2, kNumberOfStep = 1;
}  // namespace item

inline std::uint32_t checksum(std::uint8_t part, std::string_view data) {
  const auto of_part = crc32_after(0, std::as_bytes(std::span(&part, 1)));
  return crc32_after(of_part, std::as_bytes(std::span(data)));
}

inline std::string file_head() {
  std::string head(kMagic);
  append_little_endian(head, 0xBEE1, 2);
  append_little_endian(head, 0, 1);  // version
  return head;
}

inline std::string piece_of(Part part, std::string_view data) {
  std::string piece;
  append_little_endian(piece, checksum(part, data), 4);
  append_little_endian(piece, data.size(), 2);
  piece += static_cast<char>(part);
  return piece.append(data);
}

}  // namespace olmo::wandb_format
