#include "config/tokenizer_check.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/error.h"
#include "data/public/tokenizers.h"

namespace olmo::config {
namespace {

/// An official config whose end-of-text id is not that of the tokenizer file it names. It is known
/// by its run_name, so that one that was made smaller to try it out is known, too.
struct KnownMismatch {
  const char* config;  ///< of OLMo's repository
  const char* run_name;
  const char* tokenizer;  ///< file name that it gives
  std::int64_t eos_token_id;
};

constexpr const char* kPiiSpecial = "allenai_eleuther-ai-gpt-neox-20b-pii-special.json";
constexpr const char* kDolma = "allenai_gpt-neox-olmo-dolma-v1_5.json";

// The data of all of these end their documents with 50279, whatever file and id their configs name.
constexpr std::array<KnownMismatch, 7> kKnown = {{
    {"official-0724/OLMo-1B.yaml", "OLMo-1B", kPiiSpecial, kOlmoEndOfText},
    {"official-0724/OLMo-7B.yaml", "OLMo-7B", kPiiSpecial, kOlmoEndOfText},
    {"tiny/OLMo-20M.yaml", "OLMo-20M", kDolma, 0},
    {"tiny/OLMo-60M.yaml", "OLMo-60M", kDolma, 0},
    {"tiny/OLMo-150M.yaml", "OLMo-150M", kDolma, 0},
    {"tiny/OLMo-300M.yaml", "OLMo-300M", kDolma, 0},
    {"tiny/OLMo-700M.yaml", "OLMo-700M", kDolma, 0},
}};

const KnownMismatch* find_known(const TrainConfig& config, const std::string& tokenizer_file) {
  const auto name = std::filesystem::path(tokenizer_file).filename();
  const auto found = std::find_if(kKnown.begin(), kKnown.end(), [&](const KnownMismatch& known) {
    return config.run_name == known.run_name && name == known.tokenizer &&
           config.model.eos_token_id == known.eos_token_id;
  });
  return found == kKnown.end() ? nullptr : &*found;
}

}  // namespace

std::optional<std::string> check_tokenizer(const TrainConfig& config,
                                           const TokenizerFacts& tokenizer) {
  if (tokenizer.vocab_size > config.model.embedding_rows()) {
    throw Error(ErrorKind::kUsage, tokenizer.file + ": the tokenizer has " +
                                       std::to_string(tokenizer.vocab_size) +
                                       " tokens, but the embedding of the config only " +
                                       std::to_string(config.model.embedding_rows()) +
                                       " rows (`model.embedding_size`)");
  }
  const auto eos = config.model.eos_token_id;
  if (!tokenizer.endoftext_id || *tokenizer.endoftext_id == eos) return std::nullopt;
  const auto disagreement = tokenizer.file + ": `<|endoftext|>` is token " +
                            std::to_string(*tokenizer.endoftext_id) +
                            ", but `model.eos_token_id` is " + std::to_string(eos);
  if (config.allow_eos_mismatch) return disagreement + "; allowed by `allow_eos_mismatch`";
  if (const auto* known = find_known(config, tokenizer.file)) {
    return disagreement + "; so it is in OLMo's own " + known->config +
           ", whose data end their documents with token " + std::to_string(kOlmoEndOfText);
  }
  throw Error(ErrorKind::kUsage,
              disagreement +
                  "; give model.eos_token_id=" + std::to_string(*tokenizer.endoftext_id) +
                  ", another tokenizer, or allow_eos_mismatch=true to train all the same");
}

TokenizerFacts describe_tokenizer(const data::Tokenizer& tokenizer, const std::string& name) {
  TokenizerFacts facts{.file = name,
                       .endoftext_id = {},
                       .vocab_size = static_cast<std::int64_t>(tokenizer.vocab_size())};
  if (const auto id = tokenizer.token_to_id("<|endoftext|>")) facts.endoftext_id = *id;
  return facts;
}

NamedTokenizer check_named_tokenizer(const TrainConfig& config) {
  const auto& identifier = config.tokenizer.identifier;
  const auto path = data::find_tokenizer(identifier);
  if (!path) {
    std::string note =
        "tokenizer `" + identifier + "` is not on this machine: its end-of-text id was not checked";
    if (data::can_be_fetched(identifier)) note += "; `olmo-harness data fetch` brings it";
    return {std::nullopt, std::move(note)};
  }
  return {path,
          check_tokenizer(config, describe_tokenizer(data::Tokenizer::load(*path), identifier))};
}

}  // namespace olmo::config
