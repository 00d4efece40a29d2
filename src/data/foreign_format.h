// What a file is that is neither text nor token ids, by its first bytes.
#pragma once

#include <optional>
#include <string_view>

namespace olmo::data {

/// A format of other programs.
struct ForeignFormat {
  std::string_view name;   ///< with its article: "a Parquet file"
  bool is_packed = false;  ///< what it holds may be text
};

/// By first bytes that neither text nor token ids have but by a rare chance. gzip and zstd, which
/// are read, are not among them.
std::optional<ForeignFormat> foreign_format(std::string_view head);

/// The same of what should be JSON lines, whose first byte is known, so that less tells.
std::optional<ForeignFormat> foreign_to_json_lines(std::string_view head);

}  // namespace olmo::data
