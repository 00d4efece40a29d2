#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "data/token_file.h"

namespace olmo::eval {

/// What a file of a perplexity suite holds, told by its name.
enum class FileKind {
  kJsonLines,  ///< .jsonl or .json, plain, .gz or .zst: a document a line, as in Paloma and Dolma
  kText,       ///< any other name: UTF-8 text, one document
  kTokens,     ///< .npy: ids as data::TokenFile reads them
};
FileKind file_kind(const std::filesystem::path& file);

struct SuiteFile {
  std::filesystem::path path;
  std::string subdomain;  ///< of documents that do not name theirs
};

/// A data set of a suite, with its files in the order in which they are read.
struct SuiteSource {
  std::string name;
  bool named_by_documents = false;  ///< `source` of a document goes before `name`
  std::vector<SuiteFile> files;     ///< all of kind kTokens, or none
};

/// The sources at `path`:
/// - a file: one source, `name`, unless its documents name theirs;
/// - a folder of sources as in Paloma, `path/SOURCE/SPLIT/*.jsonl.gz` (or `.zst`, or plain), and as
///   in OLMo's in-loop sets, `path/SOURCE/val/*.npy` or `path/SOURCE/val.npy`;
/// - a folder of one source: `path/SPLIT/…`, or the files themselves, in folders or not.
/// Folders name the sources; the names of files (`SOURCE_SUBDOMAIN_00000000.jsonl.gz`) stand in for
/// subdomains that documents lack. Throws Error(kInput) if there is nothing to read.
std::vector<SuiteSource> find_sources(const std::string& name, const std::filesystem::path& path,
                                      const std::string& split);

/// SHA-256 over the sources' names, and the name, size and SHA-256 of every file: what was
/// evaluated, wherever it lay.
Digest sources_digest(const std::vector<SuiteSource>& sources);

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
  DocumentReader(DocumentReader&&) noexcept;
  DocumentReader& operator=(DocumentReader&&) noexcept;

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
