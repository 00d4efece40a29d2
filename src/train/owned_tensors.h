// The tensors of a checkpoint that a rank owns, on their way between its file and the ranks that
// hold parts of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/tensor.h"
#include "sharding/whole_tensors.h"
#include "store/checkpoint.h"
#include "store/raw_file.h"

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
};

/// What rank 0 tells all ranks of the file that they write.
struct SharedFile {
  std::filesystem::path path;
  std::vector<std::uint64_t> offsets;  ///< of the tensors
};

/// Writes and hashes the tensors that this rank owns.
///
/// The last page of a tensor may hold bytes of others. Owners leave it to rank 0: a client of a
/// network file system may write whole pages, and would overwrite what another one has put there.
class OwnedTensors {
 public:
  /// `file` and `held` must outlive it. Throws Error(kFailure) if the file cannot be opened.
  OwnedTensors(const SharedFile& file, const HeldTensors& held);

  /// The next windows of tensors that come from several ranks. Throws Error(kFailure).
  void write(const sharding::Windows& windows);
  /// Tensors that this rank holds itself. Throws Error(kFailure).
  void write_those_held(const sharding::WholeTensors& whole, int hash_threads);
  /// Returns when what this rank wrote is on the disk: another machine's sync would not reach it.
  void sync() const { out_.sync(); }

  /// For rank 0: whether writes were direct; the digest and the last bytes of each own tensor.
  [[nodiscard]] std::string proofs(const sharding::WholeTensors& whole) const;
  /// On rank 0: writes the last bytes of all tensors, and returns their digests. `proofs`: by rank.
  std::vector<Digest> write_tails(const std::vector<std::string>& proofs,
                                  const sharding::WholeTensors& whole);

 private:
  struct Progress {
    Sha256 hash;
    std::string tail;
    Digest digest;
  };

  [[nodiscard]] std::int64_t whole_pages(std::size_t tensor) const;
  void hash(const std::vector<sharding::Window>& lane);
  void write_pages(const sharding::Window& window);

  const SharedFile& file_;
  const HeldTensors& held_;
  store::RawWriter out_;
  std::vector<Progress> progress_;  ///< by tensor; one lane's thread at a time
  bool direct_ = false;             ///< of the thread that writes
};

/// Reads and verifies the tensors that this rank owns.
class TensorSource {
 public:
  /// `reader` must outlive it; `tensors`: of its datasets.
  TensorSource(const store::CheckpointReader& reader,
               std::vector<const store::CheckpointDataset*> tensors);

  /// Fills windows of tensors of which several ranks get parts. Throws Error(kDamaged).
  void read(const sharding::Windows& windows);
  /// Tensors of which this rank alone has a part, all of it. Throws Error(kDamaged).
  void read_those_held(const sharding::WholeTensors& whole, const HeldTensors& held);

 private:
  void read(const sharding::Window& window);

  const store::CheckpointReader& reader_;
  store::RawReader in_;
  std::vector<const store::CheckpointDataset*> tensors_;
  std::vector<Sha256> hashes_;
};

}  // namespace olmo::train
