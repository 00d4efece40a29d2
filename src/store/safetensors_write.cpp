#include <set>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/named_tensors.h"
#include "core/output_file.h"
#include "store/safetensors.h"

namespace olmo::store {
namespace {

constexpr std::size_t kAlignment =
    8;  // the tensors begin at a multiple, as the reference writer has it

const char* dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kBFloat16:
      return "BF16";
    case at::kHalf:
      return "F16";
    case at::kDouble:
      return "F64";
    case at::kLong:
      return "I64";
    case at::kInt:
      return "I32";
    case at::kShort:
      return "I16";
    case at::kChar:
      return "I8";
    case at::kByte:
      return "U8";
    default:
      throw Error(ErrorKind::kFailure,
                  std::string("safetensors: no word for dtype ") + c10::toString(type));
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
    json += Json(name).dump() + ":{\"dtype\":\"" + dtype_name(tensor.scalar_type()) +
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
