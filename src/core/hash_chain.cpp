#include "core/hash_chain.h"

#include <bit>

namespace olmo {

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

}  // namespace olmo
