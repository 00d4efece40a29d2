#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_source.h"

namespace olmo::data {

/// One line of a text file, without its newline.
struct Line {
  std::string bytes;
  std::uint64_t number = 0;  ///< from 1
  bool too_long = false;     ///< longer than the bound: `bytes` holds its beginning only
};

/// The lines of a plain, gzip or zstd file, one after the other, in bounded memory.
class LineReader {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{256} << 20;

  /// `max_line`: bytes that a line may have; longer ones come marked too_long. Throws as ByteSource
  /// does.
  explicit LineReader(const std::filesystem::path& path, std::size_t max_line = kMaxLine);

  /// Reads the next line into `line`, reusing its memory; false at the end. The last line may lack
  /// its newline. Throws Error(kInput) where compressed data is damaged.
  bool next(Line& line);

  [[nodiscard]] ByteSource& source() noexcept { return source_; }

 private:
  bool refill();

  ByteSource source_;
  std::size_t max_line_;
  std::vector<char> block_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t number_ = 0;
};

/// The field `text` of a Dolma document line (a JSON object), or why there is none.
struct DocumentText {
  std::optional<std::string> text;
  std::string problem;                               ///< one phrase; empty if there is a text
  std::optional<std::string> id, source, subdomain;  ///< where they are strings
};

/// Reads one JSON line. Nothing else of the document is kept; nesting does not recurse. A line that
/// is not UTF-8, not valid JSON, no object, or whose `text` is missing or no string has a problem.
DocumentText parse_document(std::string_view line);

/// `inputs` with each folder replaced by its .jsonl, .jsonl.gz, .jsonl.zst, .json.gz and .json.zst
/// files, sorted by name, at every depth. Throws Error(kInput) if an input does not exist or a
/// folder has no such file.
std::vector<std::filesystem::path> expand_inputs(const std::vector<std::filesystem::path>& inputs);

}  // namespace olmo::data
