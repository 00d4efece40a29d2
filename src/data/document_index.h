// FILE.csv.gz beside FILE.npy: which document each stretch of a token file is from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "data/documents/line_writer.h"
#include "data/token_file.h"

namespace olmo::data {

/// Where a document was read.
struct DocumentOrigin {
  std::string id;          ///< its field `id`; empty if it had none
  std::string source;      ///< the text file
  std::uint64_t line = 0;  ///< in it, from 1
};

/// Tokens [begin, end) of a file.
struct TokenRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct IndexedDocument {
  TokenRange tokens;
  DocumentOrigin origin;
};

std::filesystem::path document_index_path(const std::filesystem::path& token_file);

/// Writes an index as Dolma's toolkit does (python/dolma/tokenizer/memmap_writer.py): CSV without a
/// header, a line `begin,end,id,source,line` for each document, in their order. Lines end with
/// CRLF, as Python's csv.writer has them.
class DocumentIndexWriter {
 public:
  /// Throws as LineWriter does, here and below.
  explicit DocumentIndexWriter(const std::filesystem::path& token_file, int threads = 1);

  void add(const IndexedDocument& document);
  Digest finish() { return lines_.finish(); }
  void publish() { lines_.publish(); }

 private:
  LineWriter lines_;
};

/// An index, and what it must agree with.
struct DocumentIndex {
  std::filesystem::path path;
  std::uint64_t tokens = 0;           ///< of the token file
  std::optional<std::string> sha256;  ///< of the index, where a sidecar tells it
};

/// The index beside a token file; nothing if there is none. Throws as read_sidecar() does.
std::optional<DocumentIndex> find_document_index(const TokenFile& file);

// Both read the whole index. They throw Error(kInput) for lines that are no such rows, for an index
// that does not cover the file's tokens one after the other, as one of another file would not, and
// for another digest.

/// The documents that share tokens with one of the ranges, in their order.
std::vector<IndexedDocument> find_documents(const DocumentIndex& index,
                                            std::vector<TokenRange> ranges);

/// What a token file has of a text file.
struct SourceCount {
  std::string source;
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;
};

/// Those with most tokens first.
std::vector<SourceCount> count_sources(const DocumentIndex& index);
/// The counts of both, in that order.
std::vector<SourceCount> sum(const std::vector<SourceCount>& a, const std::vector<SourceCount>& b);

}  // namespace olmo::data
