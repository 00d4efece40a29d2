#include "train/tensor_hashes.h"

#include <ATen/Parallel.h>

#include "core/host_tensor.h"

namespace olmo::train {

std::vector<store::StateHash> hash_tensors(const std::string& part, const NamedTensors& tensors) {
  std::vector<store::StateHash> hashes(tensors.size());
  at::parallel_for(
      0, static_cast<std::int64_t>(tensors.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          hashes[i] = {part, tensors[i].name, sha256(host_bytes(tensors[i].tensor)).hex()};
        }
      });
  return hashes;
}

}  // namespace olmo::train
