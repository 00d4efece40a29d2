#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/files/input_file.h"

namespace olmo {

/// Bytes of a file, one after the other.
struct FilePart {
  std::uint64_t offset = 0, bytes = 0;
};

/// A part of a zip file that is stored as it is.
struct ZipRecord {
  std::uint64_t offset = 0;  ///< from the start of the file
  std::uint64_t bytes = 0;
  std::optional<std::uint32_t> crc32 = {};  ///< none: the writer left it 0, as torch.save can
};

/// The records of a zip file by name, where they can be read through the map of the file: libzip,
/// which reads the zip files that are unpacked, does not tell where a record lies. Zip64 is known
/// (PKWARE's APPNOTE 6.3.10, 4.3 and 4.5.3). The zip file is a `part` of the file, which lies
/// within it.
///
/// Throws Error(kDamaged) naming the file, and the record, for a zip file that is cut or none, and
/// for records that are compressed, encrypted, outside of it or there twice.
std::map<std::string, ZipRecord> read_zip_directory(const MappedFile& file, const FilePart& part);

/// The bytes of one of them. Throws Error(kDamaged) naming file and record if they do not have
/// their checksum.
std::string read_zip_record(const MappedFile& file, const std::string& name,
                            const ZipRecord& record);

}  // namespace olmo
