#include "train/weights.h"

#include "core/error.h"
#include "model/hf_names.h"
#include "store/checkpoint.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_manifest.h"
#include "store/safetensors.h"

namespace olmo::train {

namespace fs = std::filesystem;

NamedTensors read_weights(const fs::path& path, const model::ModelConfig& config) {
  if (!fs::exists(path))
    throw Error(ErrorKind::kInput, path.string() + ": there are no such weights");
  const auto extension = path.extension();
  if (extension == ".pt" || extension == ".bin" || extension == ".pth") {
    throw Error(
        ErrorKind::kInput,
        path.string() +
            ": is a Python pickle, which can run code and is not read; convert it with Python: "
            "`safetensors.torch.save_file(torch.load(FILE, weights_only=True), "
            "\"model.safetensors\")`");
  }
  if (!store::holds_safetensors(path))
    return store::read_checkpoint(store::resolve_checkpoint(path), /*weights_only=*/true).model;
  const NamedTensors tensors = model::strip_wrapper_prefixes(store::read_safetensors(path));
  return model::has_hf_names(tensors) ? model::from_hf_names(config, tensors) : tensors;
}

}  // namespace olmo::train
