// The data sets ("sources", as Dolma and Paloma say) of a perplexity suite, and their files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/hash.h"

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

}  // namespace olmo::eval
