// Text files, decompressed on the way: their bytes, lines and documents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"

namespace olmo::data {

enum class Compression { kNone, kGzip, kZstd };

std::string to_string(Compression compression);

/// The bytes of a file, decompressed as a stream in bounded memory: plain, gzip (all members, as
/// `cat a.gz b.gz` makes them) or Zstandard (all frames). The file's first bytes say which, not its
/// name; but a name that ends in .gz or .zst must hold what it promises.
class ByteSource {
 public:
  /// Throws Error(kInput) if the file cannot be read or is not what its name says.
  explicit ByteSource(const std::filesystem::path& path);
  ~ByteSource();
  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;

  /// Up to `size` decompressed bytes; 0 only at the end of the file. Throws Error(kInput) with the
  /// offset in the file where the compressed stream is corrupt or stops.
  std::size_t read(char* out, std::size_t size);

  [[nodiscard]] Compression compression() const;
  [[nodiscard]] std::uint64_t file_size() const;
  /// Bytes of the file consumed so far.
  [[nodiscard]] std::uint64_t file_position() const;
  /// SHA-256 of the file itself; once read() has returned 0.
  [[nodiscard]] Digest digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One line of a text file, without its newline.
struct Line {
  std::string bytes;
  std::uint64_t number = 0;  ///< from 1
  bool too_long = false;     ///< longer than the bound: `bytes` holds its beginning only
};

/// What is wrong with a line that is too long.
std::string too_long_problem();

/// The lines of a plain, gzip or zstd file, one after the other, in bounded memory.
class LineReader {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{256} << 20;

  /// `max_line`: bytes that a line may have; longer ones come marked too_long. Throws as ByteSource
  /// does.
  explicit LineReader(const std::filesystem::path& path, std::size_t max_line = kMaxLine);

  /// Reads the next line into `line`, reusing its memory; false at the end. The last line may lack
  /// its newline. Throws Error(kInput) where compressed data is damaged, and by its name for a
  /// format of other programs (Parquet, Arrow, xz, …), which can hold no JSON lines.
  bool next(Line& line);

  [[nodiscard]] ByteSource& source() noexcept { return source_; }

 private:
  bool refill();

  std::filesystem::path path_;
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
/// files, sorted by name, at every depth, but for those of a folder `attributes` beside one of
/// `documents` (data/documents/attributes.h). Throws Error(kInput) if an input does not exist or a
/// folder has no such file.
std::vector<std::filesystem::path> expand_inputs(const std::vector<std::filesystem::path>& inputs);

}  // namespace olmo::data
