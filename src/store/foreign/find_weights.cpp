#include "store/foreign/find_weights.h"

#include <string>

#include "core/files/input_file.h"
#include "store/foreign/dcp_files.h"
#include "store/foreign/olmo_core_files.h"

namespace olmo::store {

namespace fs = std::filesystem;

std::optional<fs::path> weights_in(const fs::path& folder) {
  for (const char* name : kWeightNames) {
    if (fs::exists(folder / name)) return folder / name;
  }
  return std::nullopt;
}

bool is_torch_file(const fs::path& file) {
  const auto extension = file.extension();
  return extension == ".pt" || extension == ".pth" || extension == ".bin";
}

fs::path rank_file(const fs::path& folder, std::size_t rank) {
  return folder / ("rank" + std::to_string(rank) + ".pt");
}

std::optional<ShardFormat> shard_format_of(const fs::path& folder) {
  if (is_there(folder / kBothFolder / kDcpMetadata)) return ShardFormat::kTorchNew;
  if (is_there(folder / kModelFolder / kOlmoCoreMetadata)) return ShardFormat::kOlmoCore;
  if (is_there(rank_file(folder / kModelFolder, 0))) return ShardFormat::kLocal;
  if (is_there(rank_file(folder, 0))) return ShardFormat::kTorchLegacy;
  return std::nullopt;
}

bool holds_weights(const fs::path& path) {
  if (fs::is_directory(path)) return weights_in(path) || shard_format_of(path);
  return path.extension() == ".safetensors" || is_torch_file(path);
}

}  // namespace olmo::store
