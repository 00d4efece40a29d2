#include "store/foreign/olmo_core_files.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/text/safe_text.h"
#include "store/foreign/safetensors.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<std::int64_t>;
/// Of one file, by the names of the tensors.
using Places = std::map<std::string, ShardPlace>;

constexpr char kRanges[] = "flattened_offsets", kOlder[] = "flattened_offsets_per_file";

class Metadata {
 public:
  explicit Metadata(const fs::path& file) : where_(file.string()), json_(read_json_file(file)) {}

  /// By the names of the files.
  [[nodiscard]] std::map<std::string, Places> places() const {
    std::map<std::string, Places> places;
    for (const auto& [name, tensor] : object(json_, "tensors", "").items()) {
      const Numbers shape = numbers(find(tensor, "shape"), "shape", name);
      // The name that older versions have for ranges alone.
      const bool is_older = find(tensor, kOlder) != nullptr;
      const Json& shards = object(tensor, is_older ? kOlder : "shard_spec_per_file", name);
      for (const auto& [file, shard] : shards.items()) {
        check_is_beside(where_, file);
        const auto place =
            is_older ? place_of_ranges(shape, shard, name) : place_of(shape, shard, name);
        places[file].emplace(name, place);
      }
    }
    return places;
  }

 private:
  [[noreturn]] void fail(const std::string& tensor, const std::string& what) const {
    throw_damaged(where_ + (tensor.empty() ? "" : ": tensor " + tensor), what);
  }

  static const Json* find(const Json& map, const char* key) {
    const auto found = map.is_object() ? map.find(key) : map.end();
    return found == map.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] const Json& object(const Json& map, const char* key,
                                   const std::string& tensor) const {
    const Json* value = find(map, key);
    if (value == nullptr || !value->is_object())
      fail(tensor, std::string("has no object `") + key + "`");
    return *value;
  }
  [[nodiscard]] Numbers numbers(const Json* value, const char* key,
                                const std::string& tensor) const {
    if (value == nullptr || !value->is_array())
      fail(tensor, std::string("has no list `") + key + "`");
    Numbers numbers;
    for (const Json& number : *value) {
      if (!number.is_number_integer() || number < 0 || number > INT64_MAX)
        fail(tensor, std::string("`") + key + "` holds something else than whole numbers");
      numbers.push_back(number.get<std::int64_t>());
    }
    return numbers;
  }

  /// Of [begin, end), or of a list of them, of which FSDP gives a rank one.
  [[nodiscard]] ShardPlace place_of_ranges(const Numbers& shape, const Json& ranges,
                                           const std::string& name) const {
    const bool is_list = ranges.is_array() && !ranges.empty() && ranges.front().is_array();
    if (is_list && ranges.size() != 1)
      throw Error(ErrorKind::kInput,
                  safe_line(where_ + ": tensor " + name +
                            " has a shard of several ranges of values, expected one"));
    const Numbers range = numbers(is_list ? &ranges.front() : &ranges, kRanges, name);
    if (range.size() != 2) fail(name, "has a range of values without begin or end");
    return {.shape = shape, .begin = range[0]};
  }

  /// Of ranges of values, or of a slab, of which FSDP gives rows.
  [[nodiscard]] ShardPlace place_of(const Numbers& shape, const Json& shard,
                                    const std::string& name) const {
    if (const Json* ranges = find(shard, kRanges)) return place_of_ranges(shape, *ranges, name);
    const Numbers offsets = numbers(find(shard, "global_offset"), "global_offset", name);
    const Numbers sizes = numbers(find(shard, "local_shape"), "local_shape", name);
    return required_shard_place(where_ + ": tensor " + name, shape, offsets, sizes);
  }

  std::string where_;
  Json json_;
};

class OlmoCoreFile : public SafetensorsFile {
 public:
  OlmoCoreFile(const fs::path& path, const Places& places) : SafetensorsFile(path) {
    std::vector<TensorEntry> entries = this->entries();
    for (TensorEntry& entry : entries) {
      const auto place = places.find(entry.name);
      if (place == places.end())
        throw_damaged(path.string() + ": tensor " + entry.name,
                      std::string(kOlmoCoreMetadata) + " does not say that it is here");
      entry.shard_of = place->second;
    }
    set_entries(std::move(entries));
  }
};

}  // namespace

std::vector<TensorFile> open_olmo_core(const fs::path& folder) {
  std::vector<TensorFile> files;
  for (const auto& [name, places] : Metadata(folder / kOlmoCoreMetadata).places())
    files.push_back(OlmoCoreFile(folder / name, places));
  return files;
}

}  // namespace olmo::store
