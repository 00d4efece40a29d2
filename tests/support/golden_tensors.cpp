#include "support/golden_tensors.h"

#include <cstring>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/json.h"

namespace olmo::test {
namespace {

at::ScalarType dtype_of(const std::string& name) {
  if (name == "F32") return at::kFloat;
  if (name == "BF16") return at::kBFloat16;
  if (name == "I64") return at::kLong;
  if (name == "I32") return at::kInt;
  if (name == "I16") return at::kShort;
  OLMO_CHECK(name == "BOOL");
  return at::kBool;
}

}  // namespace

const at::Tensor& GoldenTensors::at(const std::string& name) const {
  for (const auto& entry : tensors) {
    if (entry.name == name) return entry.tensor;
  }
  throw Error(ErrorKind::kInput, "golden tensor " + name + " is missing");
}

NamedTensors GoldenTensors::with_prefix(const std::string& prefix) const {
  NamedTensors found;
  for (const auto& [name, tensor] : tensors) {
    if (name.rfind(prefix, 0) == 0) found.push_back({name.substr(prefix.size()), tensor});
  }
  return found;
}

GoldenTensors read_golden_tensors(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const Json header = Json::parse(bytes.substr(sizeof header_size, header_size));
  const char* data = bytes.data() + sizeof header_size + header_size;
  GoldenTensors golden;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      golden.metadata = entry;
      continue;
    }
    at::Tensor tensor =
        at::empty(entry.at("shape").get<std::vector<std::int64_t>>(), dtype_of(entry.at("dtype")));
    const auto begin = entry.at("data_offsets").at(0).get<std::size_t>(),
               end = entry.at("data_offsets").at(1).get<std::size_t>();
    OLMO_CHECK(end - begin == tensor.nbytes());
    std::memcpy(tensor.data_ptr(), data + begin, end - begin);
    golden.tensors.push_back({name, tensor});
  }
  return golden;
}

double max_abs_difference(const at::Tensor& a, const at::Tensor& b) {
  OLMO_CHECK(a.sizes() == b.sizes());
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         std::memcmp(a.contiguous().data_ptr(), b.contiguous().data_ptr(), a.nbytes()) == 0;
}

}  // namespace olmo::test
