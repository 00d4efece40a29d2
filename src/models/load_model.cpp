#include "models/load_model.h"

#include "config/tokenizer_check.h"
#include "core/error.h"
#include "model/model_config.h"

namespace olmo::models {
namespace {

std::string describe(const ModelFiles& files) {
  std::string text = files.path.string() + ": " + to_string(files.format) + ", " +
                     std::to_string(model::count_parameters(files.config).total) + " parameters";
  if (files.step) text += ", step " + std::to_string(*files.step);
  if (files.run_id) text += " of run " + *files.run_id;
  return text;
}

}  // namespace

LoadedModel load_model(const std::filesystem::path& path, const Policy& policy) {
  return load_model(find_model(path), policy);
}

LoadedModel load_model(ModelFiles files, const Policy& policy) {
  ModelWeights weights = read_model_weights(files, /*keep_bf16=*/true);
  auto model = model::Olmo::for_inference(files.config, policy, std::move(weights.tensors));
  std::string description = describe(files);
  return {.model = std::move(model),
          .files = std::move(files),
          .weights_digest = weights.digest,
          .description = std::move(description)};
}

std::optional<std::string> check_tokenizer_fits(const ModelFiles& files,
                                                const data::Tokenizer& loaded,
                                                const std::string& name) {
  const auto tokenizer = config::describe_tokenizer(loaded, name);
  const auto rows = files.config.embedding_rows();
  if (tokenizer.vocab_size > rows) {
    throw Error(ErrorKind::kInput, tokenizer.file + ": the tokenizer has " +
                                       std::to_string(tokenizer.vocab_size) +
                                       " tokens, but the embedding of " + files.path.string() +
                                       " only " + std::to_string(rows) + " rows");
  }
  const auto& eos = files.tokenizer.ids.eos;
  if (!eos || !tokenizer.endoftext_id || *tokenizer.endoftext_id == *eos) return std::nullopt;
  const auto disagreement =
      tokenizer.file + ": `<|endoftext|>` is token " + std::to_string(*tokenizer.endoftext_id) +
      ", but " + files.path.string() + " ends its texts with token " + std::to_string(*eos);
  const auto is_olmos = [](std::int64_t id) { return id == 0 || id == config::kOlmoEndOfText; };
  if (is_olmos(*eos) && is_olmos(*tokenizer.endoftext_id)) {
    return disagreement +
           "; OLMo's two GPT-NeoX tokenizer files swap these two, all other tokens "
           "are the same";
  }
  throw Error(ErrorKind::kInput, disagreement + ": this tokenizer belongs to another model");
}

std::int64_t end_of_text(const ModelFiles& files, const data::Tokenizer* tokenizer) {
  if (files.tokenizer.ids.eos) return *files.tokenizer.ids.eos;
  if (tokenizer == nullptr) return files.config.eos_token_id;
  const auto id = config::describe_tokenizer(*tokenizer, "").endoftext_id;
  if (!id) {
    throw Error(ErrorKind::kInput,
                files.path.string() +
                    ": its config has no eos_token_id (it is null or no token of the embedding), "
                    "and the tokenizer no <|endoftext|>: what ends a text is not known");
  }
  return *id;
}

}  // namespace olmo::models
