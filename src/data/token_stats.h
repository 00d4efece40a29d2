// What `data stats` shows: the counts of token files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/files/json.h"
#include "data/document_index.h"
#include "data/token_file.h"

namespace olmo::data {

/// Counts of a token file. A document ends with the end-of-text token; tokens after the last one
/// are a document without an end.
struct TokenStats {
  std::string path;
  TokenDtype dtype = TokenDtype::kUint16;
  std::uint64_t tokens = 0;
  std::uint64_t documents = 0;
  bool ends_with_eos = false;
  std::uint64_t shortest = 0;  ///< document, in tokens with its EOS
  std::uint64_t longest = 0;
  std::uint32_t max_id = 0;
  std::uint64_t sequences = 0;         ///< instances of the sequence length asked for
  std::uint64_t tail = 0;              ///< tokens that no instance holds
  std::vector<std::uint64_t> lengths;  ///< lengths[k]: documents of 2^k to 2^(k+1) - 1 tokens
  std::optional<std::vector<SourceCount>> sources;  ///< of files with a document index alone
};

/// Reads the whole file once, and its document index.
TokenStats token_stats(const TokenFile& file, std::uint32_t eos_token_id,
                       std::uint64_t sequence_length);

/// `total` of several files, whose path is "total".
TokenStats sum(const std::vector<TokenStats>& files);

Json to_json(const TokenStats& stats);
std::string to_text(const TokenStats& stats);

}  // namespace olmo::data
