#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/suite_sources.h"

namespace olmo::eval {

/// A document as it was published: never stripped nor normalized.
struct Document {
  std::string text;  ///< UTF-8
  std::string source;
  std::string subdomain;  ///< may be empty
  std::string id;         ///< its own, else FILE#LINE (lines from 1), else FILE
  std::string place;      ///< for messages: PATH:LINE, or PATH
};

/// Lengths of a text as Catwalk and lm-eval count them.
struct TextCounts {
  std::int64_t bytes = 0;
  std::int64_t chars = 0;  ///< code points
  std::int64_t words = 0;  ///< len(re.split(r"\s+", text)): an empty text has one
};
/// `text` must be UTF-8.
TextCounts count_text(std::string_view text);

/// Streams the documents of text sources, one file after the other, in the memory of one document.
class DocumentReader {
 public:
  /// `limit`: at most so many documents of each of the sources. They must outlive the reader.
  DocumentReader(const std::vector<SuiteSource>& sources, std::optional<std::int64_t> limit);
  ~DocumentReader();

  /// The next document, false after the last. Lines without a character are passed over. Throws
  /// Error(kInput) naming file and line for one that is no document (not JSON, no `text`, not
  /// UTF-8, longer than 256 MiB), and for damaged compressed data.
  bool next(Document& document);

  /// How much has been read, in [0, 1]: of the files' bytes, or with a limit of the documents that
  /// it lets through.
  [[nodiscard]] double fraction_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace olmo::eval
