#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/files/json.h"
#include "core/process/terminal.h"
#include "data/documents/lines.h"
#include "data/token_writer.h"
#include "data/tokenizer/tokenizer.h"

namespace olmo::data {

struct TokenizeOptions {
  std::vector<std::filesystem::path>
      inputs;                            ///< files and folders (expand_inputs), read in this order
  std::filesystem::path tokenizer_path;  ///< recorded
  std::filesystem::path
      output;  ///< a file named *.npy, or a folder for tokens_00000.npy, tokens_00001.npy, ...
  std::optional<std::uint32_t> eos_token_id;  ///< default: the tokenizer's <|endoftext|>
  std::optional<TokenDtype> dtype;            ///< default: the narrowest that holds the vocabulary
  BadLinePolicy on_bad_line = BadLinePolicy::kStop;
  int threads = 1;
  std::uint64_t max_tokens_per_file = 0;  ///< 0: unlimited for a file, 512 Mi (OLMo's) for a folder
  bool overwrite = false;
  OnProgress on_progress = {};  ///< called a few times a second at most
};

struct SourceReport {
  SourceFile file;
  std::uint64_t documents = 0;
  std::uint64_t empty_documents = 0;  ///< nothing but white space: skipped, as OLMo skips them
  std::uint64_t blank_lines = 0;
  std::uint64_t bad_lines = 0;
};

struct TokenizeReport {
  std::vector<TokenWriter::Part> outputs;
  std::vector<SourceReport> sources;
  BadLines bad_lines{BadLinePolicy::kStop};
  std::uint64_t tokens = 0;
  std::uint64_t documents = 0;
  std::uint64_t text_bytes = 0;  ///< UTF-8, after strip
  std::uint32_t eos_token_id = 0;
  TokenDtype dtype = TokenDtype::kUint16;
  std::vector<std::string> warnings;
};

/// Text to token files, with the bits of OLMo's own preparation
/// (scripts/prepare_memmap_dataset.py): each document is stripped of white space at both ends,
/// empty ones are skipped, the rest is encoded, with what the tokenizer's post-processor adds, and
/// closed by EOS unless its last id is EOS already, and the ids are concatenated. Where we differ
/// on purpose:
///  - the order is that of the inputs (OLMo shuffles a Python set of paths);
///  - a document that overflows a file continues in the next one (OLMo loses its tail);
///  - a bad line stops the command or is skipped and recorded (OLMo silently drops the rest of its
///  file);
///  - EOS is <|endoftext|> unless stated (OLMo takes the last id of the vocabulary, which its
///  pii-special file uses otherwise).
///
/// Beside each token file goes a sidecar FILE.npy.json with what made it, and FILE.csv.gz, which
/// says which document each stretch is from (data/document_index.h). The bytes do not depend
/// on `threads`. Files appear under their names when everything is written and synced. Throws
/// Error(kInput) for bad inputs, Error(kUsage) for options that contradict each other or an output
/// that exists, Error(kFailure) if writing fails.
TokenizeReport tokenize(const TokenizeOptions& options, const Tokenizer& tokenizer);

/// The report as the command prints it with --json.
Json to_json(const TokenizeReport& report);

}  // namespace olmo::data
