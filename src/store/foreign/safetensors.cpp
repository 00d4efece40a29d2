#include "store/foreign/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include <nlohmann/json.hpp>

#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/files/little_endian.h"
#include "core/files/output_file.h"
#include "core/text/safe_text.h"

namespace olmo::store {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLargestHeader = 100'000'000;  // the limit of the reference implementation
constexpr int kDeepestHeader = 4;  // file, tensor, its lists, and a level to spare
// The tensors begin at a multiple, as the reference writer has it.
constexpr std::size_t kAlignment = 8;

// The header's JSON.
Json parse_header(const std::string& file, std::string_view text) {
  if (!text.starts_with('{')) throw_damaged(file, "the header does not begin with {");
  return parse_strict_json(
      text,
      {.where = file + ": the header", .kind = ErrorKind::kDamaged, .max_depth = kDeepestHeader});
}

std::string_view header_text(const MappedFile& file) {
  const std::string where = file.path().string();
  const auto bytes = file.bytes();
  if (bytes.size() < kLengthBytes) {
    throw_damaged(where, "expected at least 8 bytes, got " + std::to_string(bytes.size()));
  }
  const std::uint64_t length = little_endian(bytes.first(kLengthBytes));
  if (length > kLargestHeader || length > bytes.size() - kLengthBytes) {
    throw_damaged(where, "a header of " + std::to_string(length) +
                             " bytes does not fit a file of " + std::to_string(bytes.size()) +
                             " bytes (and at most 100 MB)");
  }
  return {reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
          static_cast<std::size_t>(length)};
}

SafetensorsMetadata parse_metadata(const std::string& file, const Json& json) {
  if (!json.is_object()) throw_damaged(file, "__metadata__ is not an object");
  SafetensorsMetadata metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) throw_damaged(file, "__metadata__: " + key + " is not a string");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

std::vector<std::uint64_t> parse_numbers(const std::string& where, const Json& tensor,
                                         const char* key) {
  const auto list = tensor.find(key);
  if (list == tensor.end() || !list->is_array())
    throw_damaged(where, std::string(key) + " is not a list");
  std::vector<std::uint64_t> numbers;
  for (const Json& number : *list) {
    if (!number.is_number_unsigned())
      throw_damaged(where, std::string(key) + " holds something else than whole numbers");
    numbers.push_back(number.get<std::uint64_t>());
  }
  return numbers;
}

TensorEntry parse_entry(const std::string& file, const std::string& name, const Json& tensor,
                        std::size_t data_begin, std::size_t data_bytes) {
  const std::string where = file + ": tensor " + name;
  if (!tensor.is_object() || tensor.size() != 3)
    throw_damaged(where, "expected dtype, shape and data_offsets");
  const auto dtype_name = tensor.find("dtype");
  if (dtype_name == tensor.end() || !dtype_name->is_string()) throw_damaged(where, "has no dtype");
  const TensorDtype* dtype = find_tensor_dtype(dtype_name->get<std::string>());
  if (dtype == nullptr) throw_damaged(where, "unknown dtype " + dtype_name->get<std::string>());
  const auto shape = parse_numbers(where, tensor, "shape");
  const auto offsets = parse_numbers(where, tensor, "data_offsets");
  const std::size_t bytes = checked_tensor_bytes(where, *dtype, shape);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_bytes) {
    throw_damaged(where, "its data_offsets are outside the file's " + std::to_string(data_bytes) +
                             " data bytes");
  }
  if (offsets[1] - offsets[0] != bytes) {
    throw_damaged(where, "its shape and dtype need " + std::to_string(bytes) +
                             " bytes, its data_offsets give " +
                             std::to_string(offsets[1] - offsets[0]));
  }
  return {.name = name,
          .dtype = dtype->word,
          .shape = std::vector<std::int64_t>(shape.begin(), shape.end()),
          .offset = data_begin + static_cast<std::size_t>(offsets[0]),
          .bytes = bytes};
}

// Checks that the tensors, in the order of their bytes, cover the data without gaps or overlaps.
void check_cover(const std::string& file, const std::vector<TensorEntry>& entries,
                 std::size_t begin, std::size_t end) {
  std::size_t expected = begin;
  for (const TensorEntry& entry : entries) {
    if (entry.offset != expected) {
      throw_damaged(file + ": tensor " + entry.name, entry.offset < expected
                                                         ? "its bytes overlap those of another"
                                                         : "there is a gap before its bytes");
    }
    expected += entry.bytes;
  }
  if (expected != end) {
    throw_damaged(file, std::to_string(end - expected) + " bytes at the end belong to no tensor");
  }
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

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : TensorFile(path) {
  const std::string where = path.string();
  const std::string_view text = header_text(map());
  const Json header = parse_header(where, text);
  const std::size_t begin = kLengthBytes + text.size();
  const std::size_t end = map().bytes().size();
  std::vector<TensorEntry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = parse_metadata(where, value);
    } else {
      entries.push_back(parse_entry(where, name, value, begin, end - begin));
    }
  }
  set_entries(std::move(entries));
  check_cover(where, this->entries(), begin, end);
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
