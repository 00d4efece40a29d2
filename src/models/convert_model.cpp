#include "models/convert_model.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "config/train_config.h"
#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/output_file.h"
#include "core/text/text.h"
#include "data/tokenizer/tokenizer.h"
#include "model/hf_names.h"
#include "model/hf_tensors.h"
#include "models/model_files.h"
#include "models/read_config.h"
#include "store/foreign/safetensors.h"
#include "store/foreign/torch_file.h"

namespace olmo::models {
namespace {

namespace fs = std::filesystem;

void write_json(const fs::path& path, const Json& json) {
  write_file_atomically(path, json.dump(2) + "\n");
}

/// Releases each tensor of `tensors` as soon as it has been rounded.
void round_to(at::ScalarType dtype, NamedTensors& tensors) {
  for (auto& [name, tensor] : tensors) tensor = tensor.to(dtype);
}

/// Consecutive tensors, as many to a file as fit.
std::vector<NamedTensors> shards_of(const NamedTensors& tensors, std::uint64_t most_bytes) {
  std::vector<NamedTensors> shards(1);
  std::uint64_t bytes = 0;
  for (const auto& entry : tensors) {
    if (!shards.back().empty() && bytes + entry.tensor.nbytes() > most_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(entry);
    bytes += entry.tensor.nbytes();
  }
  return shards;
}

void write_hf_weights(const fs::path& folder, const NamedTensors& tensors,
                      std::uint64_t shard_bytes) {
  const store::SafetensorsMetadata metadata = {{"format", "pt"}};
  const auto shards = shards_of(tensors, shard_bytes);
  if (shards.size() == 1) {
    store::write_safetensors(folder / "model.safetensors", tensors, metadata);
    return;
  }
  Json weight_map = Json::object();
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto name = formatted("model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    store::write_safetensors(folder / name, shards[i], metadata);
    for (const auto& entry : shards[i]) {
      weight_map[entry.name] = name;
      total += entry.tensor.nbytes();
    }
  }
  write_json(folder / "model.safetensors.index.json",
             {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(weight_map)}});
}

/// What transformers needs beside tokenizer.json.
Json hf_tokenizer_config(const fs::path& file, const ModelFiles& source) {
  const auto tokenizer = data::Tokenizer::load(file);
  Json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
               {"clean_up_tokenization_spaces", false},
               {"model_max_length", source.config.max_sequence_length}};
  const auto name = [&](const char* key, const std::optional<std::int64_t>& id) {
    if (!id) return;
    if (const auto token = tokenizer.id_to_token(static_cast<std::uint32_t>(*id)))
      json[key] = *token;
  };
  name("eos_token", source.tokenizer.ids.eos);
  name("bos_token", source.tokenizer.ids.bos);
  name("pad_token", source.tokenizer.ids.pad);
  return json;
}

/// A config.yaml (JSON is YAML) with what OLMo cannot do without, and nothing that it does not
/// know.
Json olmo_config(const ModelFiles& source) {
  Json model = model_json(source.config);
  for (const char* key : {"rope_scaling", "sliding_window", "full_attention_every"})
    model.erase(key);
  for (const char* key : {"attention_dropout", "residual_dropout", "embedding_dropout"})
    model[key] = 0.0;  // OLMo's default is 0.1
  if (const double theta = source.config.rope_theta; theta == std::floor(theta) && theta < 1e15)
    model["rope_theta"] = static_cast<std::int64_t>(theta);  // OLMo takes no other number
  Json json = {{"model", std::move(model)}};
  if (source.tokenizer.identifier) json["tokenizer"]["identifier"] = *source.tokenizer.identifier;
  return json;
}

void write_hf(const fs::path& folder, const ModelFiles& source, const NamedTensors& tensors,
              const ExportOptions& options) {
  write_json(folder / "config.json", to_hf_config(source.config, source.tokenizer.ids,
                                                  options.bf16 ? "bfloat16" : "float32"));
  write_hf_weights(folder, model::to_hf_names(source.config, tensors), options.shard_bytes);
  if (!source.tokenizer.file) return;
  write_json(folder / "tokenizer_config.json", hf_tokenizer_config(*source.tokenizer.file, source));
}

void write_olmo(const fs::path& folder, const ModelFiles& source, const NamedTensors& tensors) {
  write_file_atomically(folder / "config.yaml", olmo_config(source).dump(2) + "\n");
  store::write_torch_file(folder / "model.pt", tensors);
}

void require_olmo_expresses(const model::ModelConfig& config) {
  if (!model::has_olmo3_attention(config)) return;
  throw Error(ErrorKind::kUsage, std::string("OLMo's own config has no `model.") +
                                     (config.sliding_window ? "sliding_window" : "rope_scaling") +
                                     "`: export this model with --format hf");
}

void list_files(ConvertedModel& converted) {
  for (const auto& entry : fs::recursive_directory_iterator(converted.path)) {
    if (!entry.is_regular_file() || entry.is_symlink()) continue;
    converted.files.push_back(fs::relative(entry.path(), converted.path).string());
    converted.bytes += entry.file_size();
  }
  std::ranges::sort(converted.files);
}

void copy_tokenizer(const ModelFiles& source, const fs::path& folder) {
  if (source.tokenizer.file)
    write_file_atomically(folder / kTokenizerFile, read_file(*source.tokenizer.file));
}

}  // namespace

ConvertedModel export_model(const fs::path& checkpoint, const fs::path& to,
                            const ExportOptions& options) {
  ConvertedModel converted{.source = find_model(checkpoint), .path = to};
  const ModelFiles& source = converted.source;
  if (options.format == ExportFormat::kHf) {
    (void)model::hf_name_map(source.config);
  } else {
    require_olmo_expresses(source.config);
  }
  OutputFolder folder(to);
  ModelWeights weights = read_model_weights(source, /*keep_bf16=*/options.bf16);
  converted.weights_digest = weights.digest;
  round_to(options.bf16 ? at::kBFloat16 : at::kFloat, weights.tensors);
  if (options.format == ExportFormat::kHf) {
    write_hf(folder.path(), source, weights.tensors, options);
  } else {
    write_olmo(folder.path(), source, weights.tensors);
  }
  copy_tokenizer(source, folder.path());
  folder.publish();
  list_files(converted);
  return converted;
}

ConvertedModel import_model(const fs::path& from, const fs::path& to, const AddState& add_state) {
  ConvertedModel converted{.source = find_model(from), .path = to};
  const ModelFiles& source = converted.source;
  OutputFolder folder(to);
  ModelWeights weights = read_model_weights(source, /*keep_bf16=*/false);
  converted.weights_digest = weights.digest;
  Json config = {{"model", model_json(source.config)},
                 {"tokenizer", to_json(source.tokenizer.ids)}};
  if (source.tokenizer.identifier) config["tokenizer"]["identifier"] = *source.tokenizer.identifier;
  store::CheckpointContents contents;
  contents.kind = store::CheckpointKind::kWeights;
  contents.trainer = Json{{"step", 0}};
  contents.config = std::move(config);
  contents.model = std::move(weights.tensors);
  if (add_state) add_state(source, contents);
  store::save_checkpoint(folder.path(), contents);
  copy_tokenizer(source, folder.path());
  folder.publish();
  list_files(converted);
  return converted;
}

}  // namespace olmo::models
