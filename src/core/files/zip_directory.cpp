#include "core/files/zip_directory.h"

#include <algorithm>
#include <string_view>

#include "core/crc32.h"
#include "core/error.h"
#include "core/files/little_endian.h"
#include "core/text/safe_text.h"

namespace olmo {
namespace {

constexpr std::uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kEnd64Place = 0x07064b50,
                        kDirectoryEntry = 0x02014b50, kRecord = 0x04034b50;
constexpr std::uint64_t kEndBytes = 22, kEnd64Bytes = 56, kEnd64PlaceBytes = 20,
                        kDirectoryEntryBytes = 46, kRecordBytes = 30;
constexpr std::uint64_t kLongestComment = 0xFFFF;
constexpr std::uint64_t kIn64 = 0xFFFFFFFF;  // the number stands in the extra field
constexpr std::uint64_t kExtra64 = 1;
constexpr std::uint64_t kEncrypted = 1;  // a flag

class Directory {
 public:
  Directory(const MappedFile& file, const FilePart& part)
      : file_(file), begin_(part.offset), bytes_(file.bytes().subspan(part.offset, part.bytes)) {}

  std::map<std::string, ZipRecord> read() {
    const std::uint64_t end = find_end();
    std::uint64_t entries = number(end + 10, 2), at = number(end + 16, 4);
    if (end >= kEnd64PlaceBytes && number(end - kEnd64PlaceBytes, 4) == kEnd64Place) {
      const std::uint64_t end64 = number(end - kEnd64PlaceBytes + 8, 8);
      if (!holds(end64, kEnd64Bytes) || number(end64, 4) != kEnd64) fail("has no directory");
      entries = number(end64 + 32, 8);
      at = number(end64 + 48, 8);
    }
    while (entries-- > 0) at = read_entry(at);
    return std::move(records_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kDamaged, safe_line(file_.path().string() + ": the zip file " + what));
  }
  [[noreturn]] void fail(const std::string& record, const std::string& what) const {
    fail("has a record " + record + " that " + what);
  }

  [[nodiscard]] bool holds(std::uint64_t at, std::uint64_t bytes) const {
    return at <= bytes_.size() && bytes <= bytes_.size() - at;
  }

  [[nodiscard]] std::uint64_t number(std::uint64_t at, std::uint64_t bytes) const {
    if (!holds(at, bytes)) fail("ends early");
    return little_endian(bytes_.subspan(at, bytes));
  }

  [[nodiscard]] std::string text(std::uint64_t at, std::uint64_t bytes) const {
    if (!holds(at, bytes)) fail("ends early");
    return {reinterpret_cast<const char*>(bytes_.data()) + at, bytes};
  }

  /// The end record, behind which there is nothing but the comment whose length it says.
  [[nodiscard]] std::uint64_t find_end() const {
    const std::uint64_t size = bytes_.size();
    for (std::uint64_t comment = 0; comment <= kLongestComment; ++comment) {
      if (comment + kEndBytes > size) break;
      const std::uint64_t at = size - kEndBytes - comment;
      if (number(at, 4) == kEnd && number(at + 20, 2) == comment) return at;
    }
    fail("is cut, or the file is none");
  }

  /// Reads the 64-bit numbers of the extra field [at, end) into those that stand there.
  void widen(std::uint64_t at, std::uint64_t end, std::initializer_list<std::uint64_t*> numbers) {
    while (at + 4 <= end) {
      const std::uint64_t id = number(at, 2), bytes = number(at + 2, 2);
      at += 4;
      if (id != kExtra64) {
        at += bytes;
        continue;
      }
      for (std::uint64_t* value : numbers) {
        if (*value != kIn64) continue;
        if (at + 8 > end) fail("ends early");
        *value = number(at, 8);
        at += 8;
      }
      return;
    }
  }

  /// Reads the directory's entry there and returns the place of the next.
  std::uint64_t read_entry(std::uint64_t at) {
    if (number(at, 4) != kDirectoryEntry) fail("has a damaged directory");
    const std::uint64_t flags = number(at + 8, 2), method = number(at + 10, 2);
    std::uint64_t packed = number(at + 20, 4), bytes = number(at + 24, 4),
                  place = number(at + 42, 4);
    const std::uint64_t name_bytes = number(at + 28, 2), extra_bytes = number(at + 30, 2),
                        comment_bytes = number(at + 32, 2);
    const std::string name = text(at + kDirectoryEntryBytes, name_bytes);
    const std::uint64_t extra = at + kDirectoryEntryBytes + name_bytes;
    widen(extra, extra + extra_bytes, {&bytes, &packed, &place});
    if (method != 0 || packed != bytes) fail(name, "is compressed, expected one that is stored");
    if ((flags & kEncrypted) != 0) fail(name, "is encrypted");
    ZipRecord record{.offset = data_of(place, name), .bytes = bytes};
    const auto crc32 = static_cast<std::uint32_t>(number(at + 16, 4));
    if (crc32 != 0) record.crc32 = crc32;
    if (!holds(record.offset, record.bytes)) fail(name, "lies outside of it");
    record.offset += begin_;
    if (!records_.emplace(name, record).second) fail(name, "is there twice");
    return extra + extra_bytes + comment_bytes;
  }

  /// Where the data of the record at `place` begin.
  [[nodiscard]] std::uint64_t data_of(std::uint64_t place, const std::string& name) const {
    if (!holds(place, kRecordBytes) || number(place, 4) != kRecord) fail(name, "is not there");
    const std::uint64_t name_bytes = number(place + 26, 2), extra_bytes = number(place + 28, 2);
    if (text(place + kRecordBytes, name_bytes) != name) fail(name, "has another name there");
    return place + kRecordBytes + name_bytes + extra_bytes;
  }

  const MappedFile& file_;
  std::uint64_t begin_;  // of the zip file in the file
  std::span<const std::byte> bytes_;
  std::map<std::string, ZipRecord> records_;
};

}  // namespace

std::map<std::string, ZipRecord> read_zip_directory(const MappedFile& file, const FilePart& part) {
  return Directory(file, part).read();
}

std::string read_zip_record(const MappedFile& file, const std::string& name,
                            const ZipRecord& record) {
  std::string bytes(record.bytes, '\0');
  copy_mapped(file, record.offset, std::as_writable_bytes(std::span(bytes)));
  const std::uint32_t crc32 = crc32_after(0, std::as_bytes(std::span(bytes)));
  if (record.crc32.value_or(crc32) == crc32) return bytes;
  throw Error(ErrorKind::kDamaged, safe_line(file.path().string() + ": the bytes of " + name +
                                             " in the zip file do not have their checksum"));
}

}  // namespace olmo
