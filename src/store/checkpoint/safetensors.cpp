#include "store/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include <nlohmann/json.hpp>

#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/files/output_file.h"
#include "core/text/safe_text.h"

namespace olmo::store {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLargestHeader = 100'000'000;  // the limit of the reference implementation
constexpr int kDeepestHeader = 4;  // file, tensor, its lists, and a level to spare
constexpr std::size_t kMostDimensions = 64;
// The tensors begin at a multiple, as the reference writer has it.
constexpr std::size_t kAlignment = 8;

struct Dtype {
  const char* name;
  std::size_t bytes;
  at::ScalarType type;  // Undefined: readable by name and size only
};

constexpr std::array<Dtype, 16> kDtypes = {{
    {"F32", 4, at::kFloat},
    {"BF16", 2, at::kBFloat16},
    {"F16", 2, at::kHalf},
    {"F64", 8, at::kDouble},
    {"I64", 8, at::kLong},
    {"I32", 4, at::kInt},
    {"I16", 2, at::kShort},
    {"I8", 1, at::kChar},
    {"U8", 1, at::kByte},
    {"U16", 2, at::ScalarType::Undefined},
    {"U32", 4, at::ScalarType::Undefined},
    {"U64", 8, at::ScalarType::Undefined},
    {"BOOL", 1, at::ScalarType::Undefined},
    {"F8_E4M3", 1, at::ScalarType::Undefined},
    {"F8_E5M2", 1, at::ScalarType::Undefined},
    {"F8_E8M0", 1, at::ScalarType::Undefined},
}};

const Dtype* find_dtype(const std::string& name) {
  const auto found =
      std::ranges::find_if(kDtypes, [&](const Dtype& dtype) { return name == dtype.name; });
  return found == kDtypes.end() ? nullptr : found;
}

const char* dtype_word(at::ScalarType type) {
  const auto found = std::ranges::find(kDtypes, type, &Dtype::type);
  if (found != kDtypes.end() && type != at::ScalarType::Undefined) return found->name;
  throw Error(ErrorKind::kFailure,
              std::string("safetensors: no word for dtype ") + c10::toString(type));
}

[[noreturn]] void damaged(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kDamaged, safe_line(where + ": " + what));  // names may hold anything
}

// The header's JSON.
Json parse_header(const std::string& file, std::string_view text) {
  if (!text.starts_with('{')) damaged(file, "the header does not begin with {");
  return parse_strict_json(
      text,
      {.where = file + ": the header", .kind = ErrorKind::kDamaged, .max_depth = kDeepestHeader});
}

std::string_view header_text(const MappedFile& file) {
  const std::string where = file.path().string();
  const auto bytes = file.bytes();
  if (bytes.size() < kLengthBytes) {
    damaged(where, "expected at least 8 bytes, got " + std::to_string(bytes.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8U | std::to_integer<std::uint64_t>(bytes[i]);
  }
  if (length > kLargestHeader || length > bytes.size() - kLengthBytes) {
    damaged(where, "a header of " + std::to_string(length) + " bytes does not fit a file of " +
                       std::to_string(bytes.size()) + " bytes (and at most 100 MB)");
  }
  return {reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
          static_cast<std::size_t>(length)};
}

SafetensorsMetadata parse_metadata(const std::string& file, const Json& json) {
  if (!json.is_object()) damaged(file, "__metadata__ is not an object");
  SafetensorsMetadata metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) damaged(file, "__metadata__: " + key + " is not a string");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

std::vector<std::uint64_t> parse_numbers(const std::string& where, const Json& tensor,
                                         const char* key) {
  const auto list = tensor.find(key);
  if (list == tensor.end() || !list->is_array())
    damaged(where, std::string(key) + " is not a list");
  std::vector<std::uint64_t> numbers;
  for (const Json& number : *list) {
    if (!number.is_number_unsigned())
      damaged(where, std::string(key) + " holds something else than whole numbers");
    numbers.push_back(number.get<std::uint64_t>());
  }
  return numbers;
}

// Bytes of a tensor; sizes of 0 count as 1 in the check, because LibTorch multiplies strides that
// way.
std::size_t checked_bytes(const std::string& where, const Dtype& dtype,
                          const std::vector<std::uint64_t>& shape) {
  std::uint64_t total = dtype.bytes;
  if (shape.size() > kMostDimensions) damaged(where, "has more than 64 dimensions");
  for (const std::uint64_t size : shape) {
    if (__builtin_mul_overflow(total, std::max<std::uint64_t>(size, 1), &total) ||
        total > INT64_MAX) {
      damaged(where, "its shape is beyond any memory");
    }
  }
  return std::ranges::count(shape, 0U) > 0 ? 0 : static_cast<std::size_t>(total);
}

SafetensorsEntry parse_entry(const std::string& file, const std::string& name, const Json& tensor,
                             std::size_t data_begin, std::size_t data_bytes) {
  const std::string where = file + ": tensor " + name;
  if (!tensor.is_object() || tensor.size() != 3)
    damaged(where, "expected dtype, shape and data_offsets");
  const auto dtype_name = tensor.find("dtype");
  if (dtype_name == tensor.end() || !dtype_name->is_string()) damaged(where, "has no dtype");
  const Dtype* dtype = find_dtype(dtype_name->get<std::string>());
  if (dtype == nullptr) damaged(where, "unknown dtype " + dtype_name->get<std::string>());
  const auto shape = parse_numbers(where, tensor, "shape");
  const auto offsets = parse_numbers(where, tensor, "data_offsets");
  const std::size_t bytes = checked_bytes(where, *dtype, shape);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_bytes) {
    damaged(where, "its data_offsets are outside the file's " + std::to_string(data_bytes) +
                       " data bytes");
  }
  if (offsets[1] - offsets[0] != bytes) {
    damaged(where, "its shape and dtype need " + std::to_string(bytes) +
                       " bytes, its data_offsets give " + std::to_string(offsets[1] - offsets[0]));
  }
  return {.name = name,
          .dtype = dtype->name,
          .shape = std::vector<std::int64_t>(shape.begin(), shape.end()),
          .offset = data_begin + static_cast<std::size_t>(offsets[0]),
          .bytes = bytes};
}

// Sorts by place and checks that the tensors cover the data without gaps or overlaps.
void check_cover(const std::string& file, std::vector<SafetensorsEntry>& entries, std::size_t begin,
                 std::size_t end) {
  std::ranges::sort(entries, [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  std::size_t expected = begin;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.offset != expected) {
      damaged(file + ": tensor " + entry.name, entry.offset < expected
                                                   ? "its bytes overlap those of another"
                                                   : "there is a gap before its bytes");
    }
    expected += entry.bytes;
  }
  if (expected != end) {
    damaged(file, std::to_string(end - expected) + " bytes at the end belong to no tensor");
  }
}

constexpr char kWholeFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";

// Name of each tensor -> its shard, from model.safetensors.index.json.
std::map<std::string, std::string> read_index(const std::filesystem::path& path) {
  const Json index = read_json_file(path);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object())
    damaged(path.string(), "weight_map is not an object");
  std::map<std::string, std::string> shards;
  for (const auto& [name, shard] : map->items()) {
    if (!shard.is_string()) damaged(path.string(), "weight_map: " + name + " is not a string");
    const std::filesystem::path file = shard.get<std::string>();
    if (file.empty() || file != file.filename() || file == "." || file == "..") {
      damaged(path.string(),
              "weight_map: " + name + ": expected a file of the same folder, got " + file.string());
    }
    shards[name] = file.string();
  }
  return shards;
}

std::vector<SafetensorsFile> open_shards(const std::filesystem::path& index_path) {
  const auto shard_of = read_index(index_path);
  std::set<std::string> shards;
  for (const auto& [name, shard] : shard_of) shards.insert(shard);
  std::vector<SafetensorsFile> files;
  std::size_t tensors = 0;
  for (const std::string& shard : shards) {
    const auto& file = files.emplace_back(index_path.parent_path() / shard);
    for (const SafetensorsEntry& entry : file.entries()) {
      const auto found = shard_of.find(entry.name);
      if (found == shard_of.end() || found->second != shard) {
        damaged(index_path.string(), "does not say that tensor " + entry.name + " is in " + shard);
      }
    }
    tensors += file.entries().size();
  }
  if (tensors != shard_of.size()) {
    damaged(index_path.string(), "names " + std::to_string(shard_of.size()) +
                                     " tensors, its shards hold " + std::to_string(tensors) +
                                     " of them");
  }
  return files;
}

// The length and the JSON, padded with spaces. Keys are written in the tensors' order, which no
// Json object keeps.
std::string header(const NamedTensors& tensors, const SafetensorsMetadata& metadata) {
  std::string json = "{";
  if (!metadata.empty()) json += "\"__metadata__\":" + Json(metadata).dump() + ",";
  std::size_t offset = 0;
  std::set<std::string> names{"__metadata__"};
  for (const auto& [name, tensor] : tensors) {
    OLMO_CHECK(names.insert(name).second);
    OLMO_CHECK(tensor.is_contiguous() && tensor.device().is_cpu());
    const std::size_t end = offset + tensor.nbytes();
    json += Json(name).dump() + ":{\"dtype\":\"" + dtype_word(tensor.scalar_type()) +
            "\",\"shape\":" + Json(tensor.sizes().vec()).dump() + ",\"data_offsets\":[" +
            std::to_string(offset) + "," + std::to_string(end) + "]},";
    offset = end;
  }
  if (json.back() == ',') json.pop_back();
  json += "}";
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  std::string length;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    length += static_cast<char>(static_cast<std::uint64_t>(json.size()) >> shift & 0xFFU);
  }
  return length + json;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  const std::string where = path.string();
  const std::string_view text = header_text(file_);
  const Json header = parse_header(where, text);
  const std::size_t begin = kLengthBytes + text.size();
  const std::size_t end = file_.bytes().size();
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = parse_metadata(where, value);
    } else {
      entries_.push_back(parse_entry(where, name, value, begin, end - begin));
    }
  }
  check_cover(where, entries_, begin, end);
  for (std::size_t i = 0; i < entries_.size(); ++i) index_[entries_[i].name] = i;
}

const SafetensorsEntry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) damaged(file_.path().string(), "has no tensor " + name);
  return entries_[found->second];
}

at::Tensor SafetensorsFile::tensor(const std::string& name) const {
  const SafetensorsEntry& entry = this->entry(name);
  const at::ScalarType type = find_dtype(entry.dtype)->type;
  if (type == at::ScalarType::Undefined) {
    damaged(file_.path().string() + ": tensor " + name, "dtype " + entry.dtype + " cannot be read");
  }
  at::Tensor tensor = new_tensor(entry.shape, type);
  copy_mapped(file_, entry.offset, std::as_writable_bytes(mutable_host_bytes(tensor)));
  file_.check_not_cut();
  return tensor;
}

bool holds_safetensors(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return path.extension() == ".safetensors";
  return std::filesystem::exists(path / kWholeFile) || std::filesystem::exists(path / kIndexFile);
}

std::vector<SafetensorsFile> open_safetensors(const std::filesystem::path& path) {
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(path)) {
    file = path / kWholeFile;
    if (!std::filesystem::exists(file) && std::filesystem::exists(path / kIndexFile))
      return open_shards(path / kIndexFile);
  }
  std::vector<SafetensorsFile> files;
  files.emplace_back(file);
  return files;
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const SafetensorsMetadata& metadata) {
  const std::string head = header(tensors, metadata);
  OutputFile file(path);
  file.append(head);
  for (const auto& [name, tensor] : tensors)
    file.append({reinterpret_cast<const char*>(host_bytes(tensor).data()), tensor.nbytes()});
  file.publish();
}

}  // namespace olmo::store
