#include "train/hash_chain.h"

#include <bit>

#include <ATen/Parallel.h>

namespace olmo::train {

Digest chain_start(const Digest& experiment) {
  return Sha256()
      .update("olmo-harness chain 1")
      .update(experiment.bytes.data(), experiment.bytes.size())
      .finish();
}

Digest chain_next(const Digest& previous, const StepProof& proof) {
  return Sha256()
      .update(previous.bytes.data(), previous.bytes.size())
      .update_u64(static_cast<std::uint64_t>(proof.step))
      .update(proof.batch.bytes.data(), proof.batch.bytes.size())
      .update_u64(std::bit_cast<std::uint64_t>(proof.ce_loss))
      .update_u64(std::bit_cast<std::uint64_t>(proof.z_loss))
      .update_u64(std::bit_cast<std::uint32_t>(proof.grad_norm))
      .finish();
}

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

}  // namespace olmo::train
