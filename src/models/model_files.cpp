#include "models/model_files.h"

#include <array>

#include <nlohmann/json.hpp>

#include "config/as_input.h"
#include "config/file.h"
#include "core/error.h"
#include "core/files/input_file.h"
#include "data/public/tokenizers.h"
#include "model/hf_names.h"
#include "models/olmo_core_config.h"
#include "models/read_config.h"
#include "models/read_weights.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/checkpoint/checkpoint_manifest.h"
#include "store/foreign/find_weights.h"

namespace olmo::models {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& what) {
  throw Error(ErrorKind::kInput, path.string() + ": " + what);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// A text file of a model's folder as a config document, its faults as those of an input.
config::ConfigDocument parse_input(const std::string& text, const std::string& name) {
  return config::as_input([&] { return config::parse_config_document(text, name); });
}

std::optional<fs::path> tokenizer_in(std::initializer_list<fs::path> folders) {
  for (const auto& folder : folders) {
    if (is_file(folder / kTokenizerFile)) return folder / kTokenizerFile;
  }
  return std::nullopt;
}

/// The tokenizer beside the weights, else the one that a config names under `key`.
TokenizerClue tokenizer_clue(const config::ConfigDocument& document, const char* key,
                             std::initializer_list<fs::path> folders) {
  TokenizerClue clue;
  const auto* identifier = document.root.at_path(key);
  if (identifier != nullptr && identifier->kind == config::ConfigNode::Kind::kScalar)
    clue.identifier = identifier->text;
  clue.file = tokenizer_in(folders);
  if (!clue.file && clue.identifier) clue.file = data::find_tokenizer(*clue.identifier);
  return clue;
}

/// As a config of OLMo's own tells it.
TokenizerClue tokenizer_clue(const config::ConfigDocument& document,
                             const model::ModelConfig& model,
                             std::initializer_list<fs::path> folders) {
  TokenizerClue clue = tokenizer_clue(document, "tokenizer.identifier", folders);
  clue.ids.eos = model.eos_token_id;
  clue.ids.pad = model.pad_token_id;
  return clue;
}

ModelFiles describe_checkpoint(const fs::path& path) {
  ModelFiles files{.path = store::resolve_checkpoint(path)};
  const store::CheckpointReader reader(files.path);
  files.step = reader.step();
  const Json run_id = reader.summary().value("run_id", Json());
  if (run_id.is_string()) files.run_id = run_id.get<std::string>();
  // The suffix says that it is to be read as JSON.
  const auto document =
      parse_input(reader.config().dump(), (files.path / "config of checkpoint.json").string());
  files.config = read_model_config(document, /*olmo_defaults=*/false);
  files.tokenizer = tokenizer_clue(document, files.config, {files.path, files.path.parent_path()});
  // Of an imported model, whose source need not have them all.
  const Json tokenizer = reader.config().value("tokenizer", Json());
  if (tokenizer.is_object() && tokenizer.contains("eos_token_id"))
    files.tokenizer.ids =
        read_special_token_ids(tokenizer, document.name, files.config.embedding_rows());
  return files;
}

ModelFiles describe_hf_olmo(const fs::path& folder, const config::ConfigDocument& document) {
  ModelFiles files{.path = folder, .format = ModelFormat::kHfOlmo};
  files.config = read_hf_olmo_config(document);
  files.tokenizer = tokenizer_clue(document, files.config, {folder});
  files.tokenizer.ids.bos = read_special_token_ids(read_json_file(folder / kJsonConfig),
                                                   document.name, files.config.embedding_rows())
                                .bos;
  return files;
}

ModelFormat format_of(const model::ModelConfig& model) {
  if (model::has_olmo3_attention(model)) return ModelFormat::kHf3;
  return model.norm_after ? ModelFormat::kHf2 : ModelFormat::kHf;
}

ModelFiles describe_olmo_core(const fs::path& folder, const config::ConfigDocument& document) {
  const HfConfig config =
      parse_olmo_core_config(read_json_file(folder / kJsonConfig), document.name);
  ModelFiles files{.path = folder, .format = ModelFormat::kOlmoCore, .config = config.model};
  files.tokenizer = tokenizer_clue(document, "dataset.tokenizer.identifier", {folder});
  files.tokenizer.ids = config.ids;
  return files;
}

ModelFiles describe_json(const fs::path& folder) {
  const fs::path file = folder / kJsonConfig;
  const config::ConfigDocument document = parse_input(read_file(file), file.string());
  if (is_olmo_core_config(config::to_json(document.root)))
    return describe_olmo_core(folder, document);
  if (is_of_hf_olmo(document)) return describe_hf_olmo(folder, document);
  const HfConfig config = parse_hf_config(read_json_file(file), file.string());
  return {.path = folder,
          .format = format_of(config.model),
          .config = config.model,
          .tokenizer = {.file = tokenizer_in({folder}), .identifier = {}, .ids = config.ids}};
}

ModelFiles describe_olmo(const fs::path& folder) {
  const fs::path file = folder / kOlmoConfig;
  const config::ConfigDocument document = parse_input(read_file(file), file.string());
  ModelFiles files{.path = folder, .format = ModelFormat::kOlmo};
  files.config = read_model_config(document, /*olmo_defaults=*/true);
  files.tokenizer = tokenizer_clue(document, files.config, {folder});
  return files;
}

/// Of OLMo's trainer, which links its newest checkpoints there.
void refuse_save_folder(const fs::path& folder) {
  for (const char* link : {"latest", "latest-unsharded"}) {
    if (is_file(folder / link / kOlmoConfig))
      fail(folder, "is a save_folder of OLMo's trainer; give one of its checkpoints, e.g. " +
                       (folder / link).string());
  }
}

}  // namespace

std::string to_string(ModelFormat format) {
  constexpr std::array<const char*, 7> kNames = {"olmo-harness", "hf-olmo", "hf-olmo2", "hf-olmo3",
                                                 "hf_olmo",      "olmo",    "olmo-core"};
  return kNames.at(static_cast<std::size_t>(format));
}

ModelFiles find_model(const fs::path& path) {
  if (!is_there(path)) fail(path, "there is no such checkpoint");
  if (!fs::is_directory(path)) {
    fail(path,
         "is a file; a checkpoint is a folder, with config.json or config.yaml beside its "
         "weights, or one of ours");
  }
  if (is_file(path / store::kManifestName)) return describe_checkpoint(path);
  const bool hf = is_file(path / kJsonConfig), olmo = is_file(path / kOlmoConfig);
  if (!store::holds_weights(path)) {
    if (hf || olmo) {
      fail(path, std::string("holds ") + (hf ? kJsonConfig : kOlmoConfig) +
                     ", but no weights: neither model.safetensors nor " +
                     (hf ? "pytorch_model.bin, nor an index of their shards"
                         : "model.pt, nor the shards of OLMo's trainer"));
    }
    refuse_save_folder(path);
    return describe_checkpoint(path);
  }
  if (hf) return describe_json(path);
  if (olmo) return describe_olmo(path);
  fail(path,
       "holds weights, but neither config.json (Hugging Face) nor config.yaml (OLMo) "
       "that says what model they are of");
}

ModelWeights read_model_weights(const ModelFiles& files, bool keep_bf16) {
  if (files.format != ModelFormat::kCheckpoint)
    return read_foreign_weights(files.path, files.config, keep_bf16);
  const store::CheckpointReader reader(files.path);
  ModelWeights weights{.tensors = reader.read("model"), .digest = {}};
  std::vector<TensorDigest> digests;
  constexpr std::string_view kGroup = "/model/";
  for (const auto& dataset : reader.datasets()) {
    if (!dataset.path.starts_with(kGroup)) continue;
    if (dataset.dtype != "float32") fail(files.path, dataset.path + " is not float32");
    digests.push_back({dataset.path.substr(kGroup.size()), dataset.shape, dataset.sha256});
  }
  weights.digest = weights_digest(std::move(digests));
  return weights;
}

}  // namespace olmo::models
