#include "core/hash_chain.h"

#include <bit>

namespace olmo {
namespace {

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

Sha256& update(Sha256& hash, const Digest& digest) {
  return hash.update(digest.bytes.data(), digest.bytes.size());
}

}  // namespace

Digest losses_digest(std::span<const MicroBatchLoss> micro_batches) {
  Sha256 hash;
  hash.update("olmo-losses-2").update_u64(micro_batches.size());
  for (const auto& loss : micro_batches)
    hash.update_u64(bits(loss.ce_sum)).update_u64(bits(loss.z_sum));
  return hash.finish();
}

Digest chain_start(const Digest& experiment, std::int64_t format) {
  Sha256 hash;
  hash.update(format == 1 ? "olmo-harness chain 1" : "olmo-harness chain 2");
  return update(hash, experiment).finish();
}

Digest chain_next(const Digest& previous, const StepProof& proof, std::int64_t format) {
  Sha256 hash;
  if (format != 1) hash.update("olmo-link-2");
  update(hash, previous).update_u64(static_cast<std::uint64_t>(proof.step));
  update(hash, proof.batch);
  if (format != 1) update(hash, proof.losses);
  hash.update_u64(bits(proof.ce_loss));
  if (format != 1) hash.update_u64(proof.z_loss ? 1 : 0);
  return hash.update_u64(bits(proof.z_loss.value_or(0.0)))
      .update_u64(std::bit_cast<std::uint32_t>(proof.grad_norm))
      .finish();
}

}  // namespace olmo
