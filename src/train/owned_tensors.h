// The parts of a checkpoint's tensors that a rank holds, on their way to the file and back.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/compute/tensor.h"
#include "core/hash.h"
#include "sharding/relay.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/raw_file.h"

namespace olmo::train {

/// A parameter, and which of its elements this rank holds: [begin, begin + size), flattened.
struct ParameterPart {
  std::string name;
  std::vector<std::int64_t> shape;  ///< of the whole
  std::int64_t begin = 0, size = 0;
};

/// All parameters, in the model's order, on every rank; of some it may hold nothing.
using ParameterParts = std::vector<ParameterPart>;

/// All tensors of a checkpoint, and what of each lies in this rank's memory.
struct HeldTensors {
  std::vector<std::int64_t> sizes;  ///< bytes of the whole
  std::vector<sharding::ByteRange> ranges;
  std::vector<std::span<std::byte>> parts;

  void add(const ParameterPart& part, const at::Tensor& tensor);
  /// The memory of what lies in this rank's part.
  [[nodiscard]] std::span<std::byte> at(const sharding::Stretch& stretch) const;
};

/// What rank 0 tells all ranks of the file that they write. It is new, and reads as zeros where
/// nothing was written.
struct SharedFile {
  std::filesystem::path path;
  std::vector<std::uint64_t> offsets;  ///< of the tensors
};

/// Writes what this rank holds, and hashes the tensors with the other ranks.
///
/// The last page of a tensor may hold bytes of others. Ranks leave it to rank 0: a client of a
/// network file system may write whole pages, and would overwrite what another one has put there.
/// All other borders between ranks lie between pages.
///
/// Parts that are all zeros are not written: the file has them. They are two thirds of the first
/// checkpoint, whose moments are zero, and it is written while the first step is computed.
class HeldWriter {
 public:
  /// All must outlive it. `known`: the digests of the first tensors, the same on all ranks, which
  /// are then not hashed.
  HeldWriter(const SharedFile& file, const HeldTensors& held, sharding::Relay& relay,
             std::span<const Digest> known = {});

  /// Collective. When it returns, what this rank wrote is on the disk if there are others: another
  /// machine's sync would not reach it. What fails on this rank is returned, when all others are
  /// done; errors of the transport are thrown.
  [[nodiscard]] std::exception_ptr write();

  /// For rank 0: whether writes were direct; of each tensor that this rank ends, the digest and the
  /// last bytes.
  [[nodiscard]] std::string proofs() const;
  /// On rank 0: writes the last bytes of all tensors, and returns their digests. `proofs`: by rank.
  [[nodiscard]] std::vector<Digest> write_tails(const std::vector<std::string>& proofs) const;

 private:
  void write_pages();
  [[nodiscard]] std::int64_t whole_pages(std::size_t tensor) const;
  [[nodiscard]] std::span<const std::byte> tail(std::size_t tensor) const;

  const SharedFile& file_;
  const HeldTensors& held_;
  sharding::Relay& relay_;
  std::span<const Digest> known_;
  std::vector<char> zeros_;     ///< by tensor: this rank's part has nothing else
  std::vector<Sha256> hashes_;  ///< by tensor; nothing of those that are known
  bool direct_ = false;
};

/// Reads this rank's parts of tensors, and verifies the tensors with the other ranks.
class HeldReader {
 public:
  /// All must outlive it; `tensors`: of the reader's datasets, those that are held.
  HeldReader(const store::CheckpointReader& reader,
             std::vector<const store::CheckpointDataset*> tensors, const HeldTensors& held);

  /// Collective. Returns this rank's error, as Error(kDamaged), when all others are done; after an
  /// error on any rank, what the parts hold is not worth anything.
  [[nodiscard]] std::exception_ptr read(sharding::Relay& relay) const;

 private:
  const store::CheckpointReader& reader_;
  store::RawReader in_;
  std::vector<const store::CheckpointDataset*> tensors_;
  const HeldTensors& held_;
};

}  // namespace olmo::train
