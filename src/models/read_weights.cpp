#include "models/read_weights.h"

#include "core/error.h"
#include "models/mapped_weights.h"
#include "store/checkpoint.h"
#include "store/checkpoint_folder.h"
#include "store/safetensors.h"

namespace olmo::models {

namespace fs = std::filesystem;

void refuse_pickle(const fs::path& path) {
  const auto extension = path.extension();
  if (extension != ".pt" && extension != ".bin" && extension != ".pth") return;
  throw Error(ErrorKind::kInput,
              path.string() +
                  ": is a Python pickle, which can run code and is not read; convert it with "
                  "Python: `safetensors.torch.save_file(torch.load(FILE, weights_only=True), "
                  "\"model.safetensors\")`");
}

NamedTensors read_weights(const fs::path& path, const model::ModelConfig& config) {
  if (!fs::exists(path))
    throw Error(ErrorKind::kInput, path.string() + ": there are no such weights");
  refuse_pickle(path);
  if (!store::holds_safetensors(path))
    return store::read_checkpoint(store::resolve_checkpoint(path), /*weights_only=*/true).model;
  return read_safetensors_weights(path, config, /*keep_bf16=*/false).tensors;
}

}  // namespace olmo::models
