// Checkpoints: what training needs to go on bit for bit, as one HDF5 file and one manifest in a
// directory per step.
//
//   RUN_DIR/step100/        appears whole, by one rename, or not at all
//     checkpoint.h5         opens in h5py, h5dump, HDFView: contiguous, little-endian, no filters
//       /                   attributes: format = "olmo-harness-checkpoint", format_version,
//                           kind = full|weights, step, sequence (counts the saves into the
//                           folder), tokens_seen, run_id, git_revision, created_utc, ephemeral,
//                           complete = 1 (written last)
//       /config             resolved config, JSON as one UTF-8 string
//       /trainer/state      counters, JSON; its numbers and words are attributes of /trainer, too
//       /data               attributes: the members of the trainer state's object `data`
//                           (seed, epoch, start index, …)
//       /model/NAME         a parameter under OLMo's flat name:
//                           f["model"]["transformer.blocks.0.att_proj.weight"]
//       /optim/KEY/NAME     exp_avg, exp_avg_sq, step, … of that parameter
//       /optim/state        the optimizer's other values, JSON
//                           Each dataset has an attribute sha256: of its raw bytes, row-major.
//     manifest.json         the authority on integrity: the file's size; of each dataset its path,
//                           dtype, shape, offset and SHA-256; a SHA-256 of the file's other bytes
//                           (its structure), and one of the manifest itself
//   RUN_DIR/latest -> step100
//
// Writing: everything goes to step100-tmp; the HDF5 library lays the file out in memory, the
// tensors are written with large direct writes while other threads hash them, the digests go into
// the attributes, the structure is written, all is synced, checked, renamed, synced. A crash leaves
// at most a step100-tmp, which the next start or save of that run removes.
//
// Reading never hands a file to the HDF5 library, which can crash or hang on damaged ones: the
// manifest proves itself, tells where each dataset lies, and every byte read is checked against it.
//
// There is exactly one file, also where several ranks write it together
// (store/checkpoint/checkpoint_draft.h).
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/compute/named_tensors.h"
#include "core/files/json.h"
#include "core/hash.h"

namespace olmo::store {

inline constexpr int kCheckpointVersion = 1;

enum class CheckpointKind {
  kFull,     ///< weights, optimizer and trainer state: a run can go on from it
  kWeights,  ///< weights and config only
};
std::string to_string(CheckpointKind kind);

/// What a checkpoint holds. It knows no model class: names and shapes are the caller's.
struct CheckpointContents {
  CheckpointKind kind = CheckpointKind::kFull;
  /// Trainer and data-order state, an object. `step` (integer >= 0) is required; `tokens_seen` and
  /// `run_id` are shown in listings; an object `data` holds the position in the data order. Numbers
  /// must be finite.
  JsonValue trainer;
  JsonValue config;    ///< the resolved config
  NamedTensors model;  ///< OLMo's parameter names
  NamedTensors
      optim;  ///< named KEY/PARAMETER, e.g. exp_avg/transformer.wte.weight; empty if kWeights
  JsonValue optim_state;  ///< the optimizer's values that are not tensors
  /// Of `model`, tensor by tensor, if its bytes have been hashed already: a training's save takes
  /// these and hashes only the rest.
  std::vector<Digest> model_digests = {};
};

struct SaveOptions {
  bool ephemeral =
      false;  ///< OLMo's ephemeral checkpoints: replaced by the next one of either sort
  bool overwrite = false;  ///< replace a checkpoint of the same step instead of refusing
  int hash_threads = 2;    ///< threads that hash while one writes
};

/// What the run record keeps of a checkpoint.
struct SavedCheckpoint {
  std::filesystem::path path;
  std::int64_t step = 0;
  Digest manifest;  ///< SHA-256 of manifest.json, which names the digest of every other byte
  Digest tensors;   ///< over the names and digests of all tensors: equal for equal training states
  std::uint64_t bytes = 0;     ///< of all files
  double seconds = 0.0;        ///< from the start of writing until durable
  double stall_seconds = 0.0;  ///< that training stood still
  bool direct = false;         ///< the disk was written past the page cache
};

/// The directory of a step below a run's: RUN_DIR/step100.
std::filesystem::path checkpoint_path(const std::filesystem::path& run_dir, std::int64_t step);

/// Writes RUN_DIR/step{N} and points RUN_DIR/latest at it; N is trainer["step"]. Tensors:
/// contiguous CPU, fp32, fp64 or int64. When it returns, the checkpoint is durable. Throws
/// Error(kFailure) for a full disk, a read-only or unwritable folder, Error(kUsage) if the step
/// exists or RUN_DIR cannot be made; then the temporary files are removed and older checkpoints are
/// as before.
SavedCheckpoint save_checkpoint(const std::filesystem::path& run_dir,
                                const CheckpointContents& contents,
                                const SaveOptions& options = {});

/// A dataset of a checkpoint's file, as the manifest describes it.
struct CheckpointDataset {
  std::string path;                 ///< in the HDF5 file, e.g. /model/transformer.wte.weight
  std::string dtype;                ///< float32, float64, int64, or json
  std::vector<std::int64_t> shape;  ///< empty: one value
  std::uint64_t offset = 0;         ///< of its bytes in the file
  std::uint64_t bytes = 0;
  Digest sha256;
};

/// A checkpoint opened for reading. The manifest, the sizes and the structure are checked at once,
/// each dataset when read.
class CheckpointReader {
 public:
  /// `directory` holds manifest.json. Throws Error(kInput) if it cannot be read, Error(kDamaged)
  /// naming what is wrong.
  explicit CheckpointReader(const std::filesystem::path& directory);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return directory_; }
  /// The file that the datasets lie in.
  [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }
  [[nodiscard]] CheckpointKind kind() const noexcept { return kind_; }
  [[nodiscard]] std::int64_t step() const noexcept { return step_; }
  /// The manifest without its list of files: format_version, kind, step, tokens_seen, run_id,
  /// created_utc, ….
  [[nodiscard]] const Json& summary() const noexcept { return *summary_; }
  [[nodiscard]] const std::vector<CheckpointDataset>& datasets() const noexcept {
    return datasets_;
  }
  [[nodiscard]] const Digest& manifest_digest() const noexcept { return manifest_digest_; }
  [[nodiscard]] const Digest& tensors_digest() const noexcept { return tensors_digest_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  [[nodiscard]] Json config() const;
  [[nodiscard]] Json trainer() const;
  [[nodiscard]] Json optim_state() const;

  /// Every tensor under `group`, "model" or "optim", in the order they were saved, under the names
  /// of CheckpointContents. Reads and verifies in parallel. Throws Error(kDamaged) naming the
  /// tensor.
  [[nodiscard]] NamedTensors read(const std::string& group) const;
  /// As read(), into existing contiguous tensors. Throws Error(kDamaged) if one is missing,
  /// unknown, or of another shape or dtype; on any error the contents of `into` are undefined.
  void read_into(const std::string& group, const NamedTensors& into) const;

  /// One of datasets() that is a tensor. Throws Error(kDamaged).
  [[nodiscard]] at::Tensor read_tensor(const CheckpointDataset& dataset) const;

  /// Throws Error(kDamaged) naming the dataset, one of datasets(), unless `digest` is its.
  void require_digest(const CheckpointDataset& dataset, const Digest& digest) const;

  /// Reads everything once; returns one sentence per dataset whose bytes are not those that were
  /// saved.
  [[nodiscard]] std::vector<std::string> verify() const;

 private:
  [[nodiscard]] Json read_json(const std::string& dataset_path) const;
  [[nodiscard]] const CheckpointDataset* find(const std::string& dataset_path) const;

  std::filesystem::path directory_;
  std::filesystem::path file_;
  CheckpointKind kind_ = CheckpointKind::kFull;
  std::int64_t step_ = 0;
  JsonValue summary_;
  std::vector<CheckpointDataset> datasets_;
  Digest manifest_digest_;
  Digest tensors_digest_;
  std::uint64_t bytes_ = 0;
};

/// Everything, or with `weights_only` config and model alone (kind becomes kWeights). Throws as
/// CheckpointReader.
CheckpointContents read_checkpoint(const std::filesystem::path& directory,
                                   bool weights_only = false);

/// What a save is to write, or why there is nothing: ranks that save together have to tell each
/// other.
struct CheckpointSnapshot {
  CheckpointContents contents;
  std::exception_ptr missing;
};

/// Saves checkpoints while training goes on: save_async() copies the tensors, from the host's
/// memory or a GPU's, and returns; a thread writes the copy. The copy lives in memory that is
/// allocated and touched once and used again by every save. One checkpoint is in flight at most.
/// Not thread-safe: one owner calls it.
class CheckpointWriter {
 public:
  /// How a snapshot is saved, in the writer's thread. Called once for every save_async(), whatever
  /// goes wrong before; throws what is missing.
  using Save = std::function<SavedCheckpoint(const CheckpointSnapshot&, const SaveOptions&)>;

  /// `policy`: of the tensors, where a GPU has them.
  explicit CheckpointWriter(Save save, const Policy& policy = {});
  /// Saves by save_checkpoint().
  explicit CheckpointWriter(const std::filesystem::path& run_dir);
  /// Waits for the save in flight; an error that nobody has taken by wait() is logged.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Copies what `make` returns (in parallel) and begins to write it; an error of `make` or of the
  /// copy is the save's. Waits first for the save in flight, and returns that one's result if
  /// wait() had not taken it yet; throws that one's error before anything new is begun.
  std::optional<SavedCheckpoint> save_async(const std::function<CheckpointContents()>& make,
                                            const SaveOptions& options = {});
  std::optional<SavedCheckpoint> save_async(const CheckpointContents& contents,
                                            const SaveOptions& options = {});

  /// The same from where the tensors lie, without memory for a copy unless a GPU has them: nobody
  /// may write to them until wait() has returned.
  std::optional<SavedCheckpoint> save_beside(const std::function<CheckpointContents()>& make,
                                             const SaveOptions& options = {});

  /// Waits for the save in flight and returns its result, or nothing if there is none. Throws its
  /// error.
  std::optional<SavedCheckpoint> wait();

  /// True if a save has ended whose result (or error) wait() has not taken yet.
  [[nodiscard]] bool finished() const;

 private:
  std::optional<SavedCheckpoint> begin(const std::function<CheckpointContents()>& make,
                                       const SaveOptions& options);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace olmo::store
