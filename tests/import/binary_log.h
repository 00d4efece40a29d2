// What the tests of binary logs share.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "import/log.h"

namespace olmo::test {

inline std::filesystem::path golden_log(const char* name) {
  return std::filesystem::path(OLMO_TEST_DATA) / "import" / name;
}

/// The rows of a log, a text each: `step=1 loss=2.5`.
struct LogRows {
  std::vector<std::string> rows;
  bool whole = false;

  LogRows(std::string_view bytes, import::LogFormat format) {
    whole = import::for_each_log_row(
        bytes, "log", format, [&](std::int64_t, const std::vector<import::LogCell>& cells) {
          auto& row = rows.emplace_back();
          for (const auto& cell : cells)
            row += (row.empty() ? "" : " ") + std::string(cell.name) + "=" + cell.text;
        });
  }
};

/// Whether the log is refused as bad input that names the file.
inline bool is_refused(std::string_view bytes, import::LogFormat format) {
  try {
    const LogRows read(bytes, format);
    return false;
  } catch (const Error& error) {
    return error.kind() == ErrorKind::kInput && std::string(error.what()).starts_with("log:");
  }
}

}  // namespace olmo::test
