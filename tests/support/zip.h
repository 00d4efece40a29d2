#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <zip.h>

#include "support/catch.h"

namespace olmo::test {

/// A zip file of entries, each with its name and text; with ZIP_CM_STORE as they are.
inline void write_zip(const std::filesystem::path& path,
                      const std::vector<std::pair<std::string, std::string>>& entries,
                      zip_int32_t method = ZIP_CM_DEFAULT) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  REQUIRE(archive != nullptr);
  for (const auto& [name, text] : entries) {
    zip_source_t* source = zip_source_buffer(archive, text.data(), text.size(), 0);
    const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
    REQUIRE(index >= 0);
    REQUIRE(zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), method, 0) == 0);
  }
  REQUIRE(zip_close(archive) == 0);
}

}  // namespace olmo::test
