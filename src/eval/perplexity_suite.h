#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/json.h"
#include "data/token_file.h"
#include "eval/suite_sources.h"

namespace olmo::eval {

/// How documents become what the model sees; numbers of different conventions do not compare.
enum class DocumentConvention {
  kCatwalk,  ///< offline (Catwalk, OLMo-Eval, lm-eval's rolling log-likelihood): every document by
             ///< itself, every token scored once
  kOlmo,     ///< in-loop (OLMo's trainer): concatenated with eos after every document and cut into
             ///< instances whose first token is not scored
};

/// "catwalk" or "olmo". Throws Error(kUsage) for anything else.
DocumentConvention parse_document_convention(std::string_view name);
std::string to_string(DocumentConvention convention);

/// A suite with its files, ready to be evaluated.
struct PerplexitySuite {
  std::string name;
  DocumentConvention convention = DocumentConvention::kCatwalk;
  std::optional<data::TokenDtype> dtype;  ///< of token files that have no sidecar; none: uint16
  std::vector<SuiteSource> sources;       ///< all of tokens, or none
};

/// `--perplexity NAME=PATH`. Without `convention`: olmo for token files, else catwalk. Throws
/// Error(kInput) as find_sources does, Error(kUsage) for token files under catwalk.
PerplexitySuite open_perplexity_suite(const std::string& name, const std::filesystem::path& path,
                                      std::optional<DocumentConvention> convention,
                                      const std::string& split = "val");

/// A source as `evals/suites/*.json` lists it.
struct SourceDefinition {
  std::string name;          ///< as reported; for in-loop sets OLMo's label
  std::string path;          ///< file or folder below the suite's folder; default: NAME/SPLIT
  std::string get;           ///< how to get it, where that differs from the suite
  std::int64_t domains = 0;  ///< that the publication counts; 0: not stated
  bool is_public = true;
  bool in_olmo_paper = false;  ///< one of the sources that OLMo's article reports
};

/// A suite of kind `perplexity`, from `evals/suites/NAME.json`:
/// `{"kind": "perplexity", "description", "reference", "convention": "catwalk"|"olmo",
///   "folder", "split", "dtype", "missing": "skip"|"refuse", "get",
///   "sources": [{"name", "description", "path", "domains", "public", "olmo_paper", "get"}]}`.
/// In `get`, {data} stands for the data folder and {file} for the source's path.
struct SuiteDefinition {
  std::string name;
  DocumentConvention convention = DocumentConvention::kCatwalk;
  std::string folder;  ///< below one of the data folders
  std::string split = "val";
  std::optional<data::TokenDtype> dtype;
  bool refuse_missing = false;  ///< else what is missing is skipped, by name
  std::string get;
  std::vector<SourceDefinition> sources;
};

/// Throws Error(kUsage) "WHERE: …" for a definition that is not of this form; an unknown key is
/// named.
SuiteDefinition parse_suite_definition(const std::string& name, const Json& json,
                                       const std::string& where);

/// A source that is not on disk.
struct MissingSource {
  std::string name;
  std::string path;  ///< where it was looked for
  std::string get;   ///< how to get it: a command or a sentence; may be empty
};

struct ResolvedSuite {
  PerplexitySuite suite;  ///< the sources that were found, in order; there may be none
  std::vector<MissingSource> missing;
};

/// Finds the suite's files: its folder in the first of `data_folders` that has it. Throws
/// Error(kInput) naming each missing source and how to get it if any is missing and
/// `refuse_missing`, or if all are.
ResolvedSuite resolve_suite(const SuiteDefinition& definition,
                            std::span<const std::filesystem::path> data_folders,
                            bool refuse_missing);

/// A suite of token files by source, in the convention of OLMo's trainer. A source is missing if
/// one of its files is.
ResolvedSuite suite_of_token_files(const std::string& name,
                                   const std::map<std::string, std::vector<std::string>>& files,
                                   data::TokenDtype dtype);

}  // namespace olmo::eval
