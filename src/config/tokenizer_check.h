// Whether a tokenizer fits a config.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "config/train_config.h"
#include "data/tokenizer/tokenizer.h"

namespace olmo::config {

/// The id of `<|endoftext|>` in the data of OLMo's official configs, whatever they say it is.
inline constexpr std::int64_t kOlmoEndOfText = 50279;

/// What train needs to know of a tokenizer to check it against the config.
struct TokenizerFacts {
  std::string file;  ///< path or identifier, for messages and for the table of known cases
  std::optional<std::int64_t>
      endoftext_id;             ///< id of `<|endoftext|>`, if the tokenizer has that token
  std::int64_t vocab_size = 0;  ///< ids are below it
};

/// What a tokenizer is checked by; `name` stands for it in messages.
TokenizerFacts describe_tokenizer(const data::Tokenizer& tokenizer, const std::string& name);

/// Checks that the tokenizer's end-of-text token is `model.eos_token_id` and that its ids fit the
/// embedding. OLMo's two GPT-NeoX tokenizer files swap the ids 0 and 50279, and OLMo's official
/// configs name the wrong one: those configs pass with a note. Returns the note that must be
/// recorded with the run, if any; throws Error(kUsage) naming `allow_eos_mismatch=true` for any
/// other disagreement.
std::optional<std::string> check_tokenizer(const TrainConfig& config,
                                           const TokenizerFacts& tokenizer);

/// The tokenizer that a config names, and what the run record must note of it.
struct NamedTokenizer {
  std::optional<std::filesystem::path> path;
  std::optional<std::string> note;
};

/// Finds the tokenizer and checks it against the config (check_tokenizer, which says what it
/// throws); one that is not here is noted.
NamedTokenizer check_named_tokenizer(const TrainConfig& config);

}  // namespace olmo::config
