#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "data/token_file.h"

namespace olmo::data {

/// What the sidecar of a token file says (written by `tokenize`, JSON). Only these keys are read
/// back; the rest is for people: documents, sources with their hashes, skipped
/// lines, warnings.
struct Sidecar {
  std::optional<TokenDtype> dtype;
  std::optional<std::uint64_t> tokens;
  std::optional<std::string> sha256;  ///< of the token file
  std::optional<std::uint32_t> eos_token_id;
  std::optional<std::string> tokenizer_path;
  std::optional<std::string> tokenizer_sha256;
};

/// Nothing if the token file has no sidecar. Throws Error(kInput) if it has one that is not a JSON
/// object.
std::optional<Sidecar> read_sidecar(const std::filesystem::path& token_file);

}  // namespace olmo::data
