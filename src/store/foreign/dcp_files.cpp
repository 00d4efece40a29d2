#include "store/foreign/dcp_files.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text/safe_text.h"
#include "store/foreign/torch_archive.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Kind = PickleValue::Kind;

constexpr std::uint64_t kLargestMetadata = 256 << 20;

/// A shard as .metadata tells of it.
struct Shard {
  std::string tensor;
  std::vector<std::int64_t> shape;  ///< of the tensor
  std::vector<std::int64_t> offsets;
  FilePart part;
};
using Shards = std::vector<Shard>;

class Metadata {
 public:
  explicit Metadata(const fs::path& file)
      : where_(file.string()), pickle_(read(file), file.string()) {}

  /// Of the tensors whose names begin so, by the names of the files.
  [[nodiscard]] std::map<std::string, Shards> shards(std::string_view prefix) const {
    const PickleValue* places = pickle_.root().attribute("storage_data");
    if (places == nullptr || places->kind != Kind::kDict) fail("holds no storage_data");
    const auto shapes = this->shapes();
    std::map<std::string, Shards> shards;
    for (std::size_t i = 0; i < places->items.size(); i += 2) {
      const std::string tensor = text(*places->items[i], "fqn");
      if (!tensor.starts_with(prefix)) continue;
      const auto shape = shapes.find(tensor);
      if (shape == shapes.end()) continue;  // an object that is no tensor
      const PickleValue& place = *places->items[i + 1];
      shards[file_of(place)].push_back({.tensor = tensor,
                                        .shape = shape->second,
                                        .offsets = numbers(*places->items[i], "offset"),
                                        .part = part_of(place, tensor)});
    }
    return shards;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw_damaged(where_, what); }

  static std::string read(const fs::path& file) {
    if (InputFile(file).size() <= kLargestMetadata) return read_file(file);
    throw Error(ErrorKind::kInput,
                file.string() + ": has more than " + std::to_string(kLargestMetadata) + " bytes");
  }

  [[nodiscard]] const PickleValue& attribute(const PickleValue& object, const char* name) const {
    const PickleValue* value = object.attribute(name);
    if (value == nullptr) fail(std::string("tells of a tensor without `") + name + "`");
    return *value;
  }
  [[nodiscard]] std::string text(const PickleValue& object, const char* name) const {
    return std::string(attribute(object, name).text);
  }
  [[nodiscard]] std::vector<std::int64_t> numbers(const PickleValue& object,
                                                  const char* name) const {
    const auto numbers = attribute(object, name).whole_numbers();
    if (!numbers)
      fail(std::string("tells of a tensor whose `") + name + "` holds no whole numbers");
    return *numbers;
  }

  [[nodiscard]] std::map<std::string, std::vector<std::int64_t>> shapes() const {
    const PickleValue* tensors = pickle_.root().attribute("state_dict_metadata");
    if (tensors == nullptr || tensors->kind != Kind::kDict) fail("holds no state_dict_metadata");
    std::map<std::string, std::vector<std::int64_t>> shapes;
    for (std::size_t i = 0; i < tensors->items.size(); i += 2) {
      const PickleValue& tensor = *tensors->items[i + 1];
      const bool is_tensor = tensor.kind == Kind::kCall &&
                             tensor.items[0]->is_name("torch.distributed.checkpoint.metadata",
                                                      "TensorStorageMetadata");
      if (is_tensor) shapes[std::string(tensors->items[i]->text)] = numbers(tensor, "size");
    }
    return shapes;
  }

  /// A file beside .metadata.
  [[nodiscard]] std::string file_of(const PickleValue& place) const {
    const fs::path file = text(place, "relative_path");
    check_is_beside(where_, file);
    return file.string();
  }

  [[nodiscard]] FilePart part_of(const PickleValue& place, const std::string& tensor) const {
    const PickleValue& offset = attribute(place, "offset");
    const PickleValue& length = attribute(place, "length");
    const auto is_size = [](const PickleValue& value) {
      return value.kind == Kind::kInteger && value.integer >= 0;
    };
    if (!is_size(offset) || !is_size(length)) fail("tensor " + tensor + " has no place in a file");
    const PickleValue* transforms = place.attribute("transform_descriptors");
    if (transforms != nullptr && transforms->kind == Kind::kList && !transforms->items.empty())
      throw Error(ErrorKind::kInput, safe_line(where_ + ": tensor " + tensor +
                                               " is compressed, expected one that is stored"));
    return {.offset = static_cast<std::uint64_t>(offset.integer),
            .bytes = static_cast<std::uint64_t>(length.integer)};
  }

  std::string where_;
  Pickle pickle_;
};

class DcpFile : public TensorFile {
 public:
  DcpFile(const fs::path& path, const Shards& shards) : TensorFile(path) {
    std::vector<TensorEntry> entries;
    entries.reserve(shards.size());
    for (const Shard& shard : shards) entries.push_back(entry_of(shard));
    set_entries(std::move(entries));
  }

 private:
  [[nodiscard]] TensorEntry entry_of(const Shard& shard) const {
    const std::string where = map().path().string() + ": tensor " + shard.tensor;
    const std::uint64_t size = map().bytes().size();
    if (shard.part.offset > size || shard.part.bytes > size - shard.part.offset)
      throw_damaged(where, "lies beyond the end of the file: it is cut");
    auto tensors = TorchArchive(map(), shard.part).tensors(shard.tensor);
    if (tensors.size() != 1 || tensors.front().name != shard.tensor)
      throw_damaged(where, "something else lies at its place");
    TensorEntry entry = std::move(tensors.front());
    entry.shard_of = required_shard_place(where, shard.shape, shard.offsets, entry.shape);
    return entry;
  }
};

}  // namespace

std::vector<TensorFile> open_dcp(const fs::path& folder, std::string_view prefix) {
  std::vector<TensorFile> files;
  for (const auto& [name, shards] : Metadata(folder / kDcpMetadata).shards(prefix))
    files.push_back(DcpFile(folder / name, shards));
  return files;
}

}  // namespace olmo::store
