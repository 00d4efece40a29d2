#include "store/foreign/weight_files.h"

#include <map>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "store/foreign/find_weights.h"
#include "store/foreign/olmo_shards.h"
#include "store/foreign/safetensors.h"
#include "store/foreign/torch_file.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;

TensorFile open_file(const fs::path& file) {
  if (is_torch_file(file)) return TorchFile(file);
  return SafetensorsFile(file);
}

// Name of each tensor -> its shard, from the index.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const Json index = read_json_file(path);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object())
    throw_damaged(path.string(), "weight_map is not an object");
  std::map<std::string, std::string> shards;
  for (const auto& [name, shard] : map->items()) {
    if (!shard.is_string())
      throw_damaged(path.string(), "weight_map: " + name + " is not a string");
    const fs::path file = shard.get<std::string>();
    check_is_beside(path.string() + ": weight_map: " + name, file);
    shards[name] = file.string();
  }
  return shards;
}

std::vector<TensorFile> open_shards(const fs::path& index_path) {
  const auto shard_of = read_index(index_path);
  std::set<std::string> shards;
  for (const auto& [name, shard] : shard_of) shards.insert(shard);
  std::vector<TensorFile> files;
  std::size_t tensors = 0;
  for (const std::string& shard : shards) {
    const auto& file = files.emplace_back(open_file(index_path.parent_path() / shard));
    for (const TensorEntry& entry : file.entries()) {
      const auto found = shard_of.find(entry.name);
      if (found == shard_of.end() || found->second != shard) {
        throw_damaged(index_path.string(),
                      "does not say that tensor " + entry.name + " is in " + shard);
      }
    }
    tensors += file.entries().size();
  }
  if (tensors != shard_of.size()) {
    throw_damaged(index_path.string(), "names " + std::to_string(shard_of.size()) +
                                           " tensors, its shards hold " + std::to_string(tensors) +
                                           " of them");
  }
  return files;
}

}  // namespace

StoredTensors open_weights(const fs::path& path) {
  fs::path file = path;
  if (fs::is_directory(path)) {
    const auto of_whole = weights_in(path);
    const auto format = of_whole ? std::nullopt : shard_format_of(path);
    if (format) return open_model_shards(path, *format);
    file = of_whole.value_or(path / kWeightNames.front());
  }
  std::vector<TensorFile> files;
  if (file.extension() == ".json") {
    files = open_shards(file);
  } else {
    files.push_back(open_file(file));
  }
  return {std::move(files), path.string()};
}

}  // namespace olmo::store
