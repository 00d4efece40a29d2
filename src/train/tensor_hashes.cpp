#include "train/tensor_hashes.h"

#include <algorithm>
#include <tuple>

#include <ATen/Parallel.h>

namespace olmo::train {

std::vector<store::StateHash> hash_tensors(const std::string& part, const NamedTensors& tensors) {
  std::vector<store::StateHash> hashes(tensors.size());
  at::parallel_for(
      0, static_cast<std::int64_t>(tensors.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          const at::Tensor& tensor = tensors[i].tensor;
          const auto bytes =
              std::span(static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes());
          hashes[i] = {part, tensors[i].name, sha256(bytes).hex()};
        }
      });
  return hashes;
}

Digest seal_of(std::vector<store::StateHash> hashes, const Digest& chain) {
  std::sort(hashes.begin(), hashes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.part, a.name) < std::tie(b.part, b.name);
  });
  Sha256 seal;
  seal.update(chain.bytes.data(), chain.bytes.size());
  for (const auto& [part, name, sha256] : hashes) {
    for (const std::string* field : {&part, &name, &sha256})
      seal.update_u64(field->size()).update(*field);
  }
  return seal.finish();
}

}  // namespace olmo::train
