#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/files/json.h"
#include "core/process/terminal.h"
#include "data/documents/lines.h"
#include "data/documents/word_index.h"

namespace olmo::data {

/// What is compared: whole texts; lines of a text; the value of a field; or whether a text shares
/// words in a row with others (data/documents/word_index.h).
enum class DedupBy { kDocument, kParagraph, kField, kWords };

struct DedupOptions {
  std::vector<std::filesystem::path>
      inputs;  ///< files and folders (expand_inputs), read in this order
  DedupBy by = DedupBy::kDocument;
  std::string field;                           ///< of kField: `id`, `metadata.url`
  std::vector<std::filesystem::path> against;  ///< files and folders of documents
  WordIndex words = {};           ///< of kWords: further texts, which were added before
  std::uint64_t words_texts = 0;  ///< how many documents these are
  std::filesystem::path output;   ///< the documents that remain; empty: attributes are written
  std::string attributes;         ///< their name
  BadLinePolicy on_bad_line = BadLinePolicy::kStop;
  int threads = 1;
  bool overwrite = false;
  OnProgress on_progress = {};
};

struct DedupSource {
  std::string path;
  std::uint64_t documents = 0;
  std::uint64_t duplicates = 0;  ///< whole documents
  std::uint64_t paragraphs = 0;  ///< of kParagraph, blank ones left out
  std::uint64_t duplicate_paragraphs = 0;
  std::uint64_t without_field = 0;  ///< of kField: kept
};

struct DedupReport {
  std::vector<DedupSource> sources;
  BadLines bad_lines{BadLinePolicy::kStop};
  std::uint64_t compared_with = 0;  ///< documents of `against` and `words`
  std::uint64_t text_bytes = 0;     ///< read
  std::uint64_t duplicate_bytes = 0;
  std::vector<std::filesystem::path> outputs;
};

/// Of all sources together; it has no path.
DedupSource total(const DedupReport& report);

/// Finds what was there before: of equal texts (fields, paragraphs) the first in the order of the
/// inputs stays. With `against` or `words`, what is equal to a text there is found, and
/// nothing else: a corpus without evaluation texts. Comparison is exact, to the byte, by
/// data/documents/key_set.h; no Bloom filter, so no false finds, and threads change nothing.
///
///  - kDocument: the text. A text of white space alone equals none.
///  - kParagraph: each line of the text, without the newline that ends it. Blank ones equal none. A
///    span has the newline that follows its paragraph.
///  - kField: a string, number or boolean. A document without it equals none.
///  - kWords: needs something to compare with. A text is found that is one of those texts, word by
///    word, or shares 13 words in a row with one.
///
/// Writes either `output`, the documents that remain, each line as it was (but for kParagraph,
/// where `text` lacks what was found; a document is left out if nothing but white space remains);
/// or for each input the attribute file that Dolma's deduper would (data/documents/attributes.h): a
/// line
/// {"attributes": {NAME: [[begin, end, 1.0], …]}, "id": …} for each document. Files appear when all
/// are written. Throws Error(kInput) for bad inputs, Error(kUsage) for options that contradict each
/// other or an output that exists, Error(kFailure) if writing fails.
DedupReport dedup(DedupOptions options);

/// The report as the command prints it with --json.
Json to_json(const DedupReport& report);

}  // namespace olmo::data
