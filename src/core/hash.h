// SHA-256, and the hash chain of a training that is made of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace olmo {

/// A SHA-256 digest (FIPS 180-4).
struct Digest {
  std::array<std::uint8_t, 32> bytes{};

  [[nodiscard]] std::string hex() const;
  /// Throws Error(kDamaged) unless `hex` is 64 hexadecimal digits.
  static Digest from_hex(std::string_view hex);
  friend bool operator==(const Digest&, const Digest&) = default;
};

/// Streaming SHA-256 over bytes in the order they are given. A value: a copy goes on by itself, and
/// its bytes may be sent to another process of this build, which then goes on.
class Sha256 {
 public:
  Sha256();

  Sha256& update(const void* data, std::size_t size);
  Sha256& update(std::string_view text) { return update(text.data(), text.size()); }
  /// Adds the eight little-endian bytes of `value`.
  Sha256& update_u64(std::uint64_t value);
  [[nodiscard]] Digest finish() const;

 private:
  std::array<std::uint32_t, 28> context_;  ///< OpenSSL's SHA256_CTX
};

Digest sha256(std::string_view bytes);
Digest sha256(std::span<const std::byte> bytes);
/// Digest of a whole file, as `sha256sum` prints it. Throws Error(kInput) if it cannot be read.
Digest sha256_file(const std::filesystem::path& path);

// The hash chain of a training: one link a step. Two runs are the same exactly as far as their
// chains agree, and a record whose rows were altered does not give its own links any more.
//
// Format 2. Numbers are u64, little-endian; floats enter with all their bits.
//
//   losses  = SHA-256("olmo-losses-2", n, then of each micro-batch 0..n-1: ce_sum, z_sum)
//   start   = SHA-256("olmo-harness chain 2", experiment digest)
//   link    = SHA-256("olmo-link-2", link before, step, batch digest, losses, ce_loss,
//                     1 and z_loss, or 0 and 0 without one, grad_norm)
//
// A row of `steps` holds every part of its link (`loss_hash` is `losses`), so a reader verifies it
// without computing anything. The sums of single micro-batches are in it so that ranks, each of
// which knows only its own, can prove theirs; ce_loss and z_loss are the quotients of their totals.
//
// Format 1 (records before schema version 6) had no `losses`, and 0 for a z_loss that there was
// not:
//
//   start   = SHA-256("olmo-harness chain 1", experiment digest)
//   link    = SHA-256(link before, step, batch digest, ce_loss, z_loss, grad_norm)

/// What is written. Older formats are read and verified.
inline constexpr std::int64_t kChainFormat = 2;

/// The losses of one micro-batch, summed over its labels, nats.
struct MicroBatchLoss {
  double ce_sum = 0;
  double z_sum = 0;
};

/// `losses` of the comment above; micro-batches in the order of their numbers.
Digest losses_digest(std::span<const MicroBatchLoss> micro_batches);

/// What one step adds to the chain.
struct StepProof {
  std::int64_t step = 0;
  Digest batch;
  Digest losses;  ///< not in format 1
  double ce_loss = 0;
  std::optional<double> z_loss;
  float grad_norm = 0;
};

/// The first link: of the experiment, before any step.
Digest chain_start(const Digest& experiment, std::int64_t format = kChainFormat);

/// The next link: of the one before and of what the step saw and computed.
Digest chain_next(const Digest& previous, const StepProof& proof,
                  std::int64_t format = kChainFormat);

}  // namespace olmo
