// What a run needs before it starts, and what is wrong with that: for a start, which stops at any
// problem, and for the plan, which lists them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/tokenizer_check.h"
#include "config/train_config.h"
#include "core/compute/gpu.h"
#include "core/compute/machine.h"
#include "core/compute/policy.h"
#include "core/error.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "data/tokenizer/tokenizer.h"
#include "evaluation/evaluators.h"
#include "store/runs/run_records.h"
#include "train/memory.h"

namespace olmo::train {

/// What keeps a run from starting: every check says its own, so that a user meets all of them at
/// once.
class Problems {
 public:
  /// Runs a check. An Error that it throws is kept, as add() says, and false returned.
  template <class Check>
  bool check(const Check& run) {
    try {
      run();
      return true;
    } catch (const Error& error) {
      add(error);
      return false;
    }
  }
  /// A message of several lines is as many problems; indented lines belong to the one above. The
  /// same one is kept once.
  void add(const Error& problem);

  [[nodiscard]] const std::vector<Error>& all() const { return all_; }
  /// Throws if there is any: a single one as it is, several with a line each and the kind of the
  /// first.
  void throw_if_any() const;

 private:
  void keep(ErrorKind kind, const std::string& message);

  std::vector<Error> all_;
};

/// What a run takes of the machine, beside what is there.
struct Needs {
  std::int64_t memory = 0;      ///< bytes of the machine's, as `memory_of` counts them
  NeededMemory memory_of = {};  ///< the same of another config
  MachineMemory machine;
  std::int64_t checkpoint = 0;                ///< bytes of one
  std::optional<std::int64_t> checkpoints;    ///< that lie in the folder at the end; if it is known
  std::optional<std::uint64_t> free_on_disk;  ///< bytes, where the run folder is or will be
};

/// A file that decides the result.
struct InputFile {
  std::string kind;  ///< tokens, label_mask, tokenizer, weights
  std::filesystem::path path;
};

/// Policy, tokenizer, data and evaluators of a config, made ready.
struct Preparation {
  std::optional<Policy> policy;  ///< if it has no problem
  config::NamedTokenizer tokenizer;
  std::optional<data::BatchSource> batches;          ///< if the token files have no problem
  std::vector<InputFile> input_files;                ///< token files, label masks, tokenizer
  std::vector<store::InputRecord> inputs;            ///< the same with their digests
  std::optional<evaluation::Evaluators> evaluators;  ///< if they have no problem
  std::vector<std::string> notes;  ///< for the user and for the record, the config's first
};

/// Whether prepare() hashes the input files. Several ranks do it together afterwards
/// (train/shared_inputs.h).
enum class InputDigests { kNow, kLater };

/// Checks everything but the run folder: what is not supported, the policy (which is applied),
/// tokenizer, token files and evaluators. Writes nothing. `local`: see set_device.
Preparation prepare(const config::LoadedConfig& loaded, Problems& problems,
                    InputDigests digests = InputDigests::kNow, const LocalRank& local = {});

/// The token files and label masks of a config, each as often as it is named. Whether
/// describe_inputs() hashes them whole depends on all of them.
std::vector<InputFile> data_files_of(const config::TrainConfig& config);

/// Size and digest of each file for which `wanted(i)` holds; of the others, kind and path alone.
std::vector<store::InputRecord> describe_inputs(
    const std::vector<InputFile>& files, const std::function<bool(std::size_t i)>& wanted = {});
/// Without those of which kind and path came before: a config may name a file several times.
std::vector<store::InputRecord> each_once(std::vector<store::InputRecord> inputs);
/// A token file that was hashed whole must have the SHA-256 that its sidecar says; throws
/// Error(kInput).
void require_sidecars_agree(const std::vector<store::InputRecord>& inputs);

/// Checks that a folder is one, or can be made and written to; writes nothing.
void require_writable_folder(const std::filesystem::path& folder);

/// `memory_of`: of the machine's memory; `steps`: of the run, if known.
Needs needs_of(const config::TrainConfig& config, const NeededMemory& memory_of,
               const std::filesystem::path& run_dir, std::optional<std::int64_t> steps);
/// Memory and disk that are not there: the run would be killed, or fail at its first checkpoint.
/// One sentence each. A start goes on all the same, for the estimate may be wrong.
std::vector<std::string> shortages(const Needs& needs, const config::TrainConfig& config,
                                   const std::filesystem::path& run_dir);

/// Where weights to start from lie: the path itself, or of a run's folder the newest checkpoint. A
/// run that goes on saves newer ones, so a start looks once. Throws if there is nothing to read.
std::filesystem::path place_of_weights(const std::filesystem::path& weights);
/// Digests of the weights to start from: a file, or the files of a folder; of a run's folder those
/// of the newest checkpoint.
std::vector<store::InputRecord> describe_weights(const std::filesystem::path& weights);

}  // namespace olmo::train
