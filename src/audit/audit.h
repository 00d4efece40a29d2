// Audits: recorded steps are computed again on this machine and compared with the record.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "audit/comparison.h"
#include "config/train_config.h"
#include "core/compute/policy.h"
#include "core/trace/op_digest.h"

namespace olmo::audit {

/// Steps first..last.
struct Stretch {
  std::int64_t first = 1;
  std::int64_t last = 1;
};

enum class AuditVerdict {
  kIdentical,       ///< every bit that was compared
  kWithinEnvelope,  ///< `fast` only: as far from the portable reference as `fast` is on this
                    ///< machine
  kDifferent,
};
std::string to_string(AuditVerdict verdict);

/// One step's operations, hashed here.
struct TracedStep {
  std::int64_t step = 0;
  std::vector<OpDigest> digests;
};

/// The result of one stretch.
struct StretchResult {
  Stretch stretch;
  std::string started_from;     ///< a checkpoint's path, or what initial weights were taken
  std::int64_t start_step = 0;  ///< finished steps there
  AuditVerdict verdict = AuditVerdict::kIdentical;
  std::vector<store::Finding> findings;  ///< in the order of the steps
  std::string operation;                 ///< the first that differs from the recorded traces
  std::string advice;                    ///< what the findings mean, or how to learn more
  std::int64_t steps_compared = 0;
  std::int64_t tensors_compared = 0;
  Distances distances;
  std::vector<TracedStep> traces;
  double seconds = 0;
};

struct AuditResult {
  std::vector<store::Finding> broken_proofs;  ///< found in the record without computing
  std::vector<std::string> other_inputs;      ///< of unlike_inputs()
  std::string disagreement;  ///< of the run with itself (store/runs/retrained_steps.h)
  std::vector<StretchResult> stretches;

  [[nodiscard]] AuditVerdict verdict() const;
};

struct AuditOptions {
  std::filesystem::path database;                    ///< checkpoints are also looked for beside it
  std::optional<std::filesystem::path> checkpoints;  ///< the folder that holds step{N}
  std::vector<Stretch> stretches;
  /// The record's trace of a step, with which the step's operations are compared; empty if it has
  /// none.
  std::function<std::vector<OpDigest>(std::int64_t step)> recorded_trace;
  bool trace = false;  ///< hash the operations of every step of the stretches
};

/// The stretch, checked to lie within the recorded steps. Throws Error(kUsage) for steps that were
/// not recorded.
void require_recorded(const AuditedRun& recorded, const Stretch& stretch);

/// `count` stretches of `length` steps at random places of the run, in order; `seed` makes the
/// choice again.
std::vector<Stretch> sample_stretches(const AuditedRun& recorded, std::int64_t count,
                                      std::int64_t length, std::uint64_t seed);

/// Audits the stretches under `policy` (its numerics are those of the record), and each step whose
/// proof is broken. `config` is the run's, with paths of this machine. `done` is called after each
/// stretch. A run under `fast` is computed twice here, under `portable` and under `fast`: their
/// distance, four times, is the envelope that the record may lie in. Throws what reading the token
/// files throws; damaged checkpoints are findings.
AuditResult audit(const AuditedRun& recorded, const config::TrainConfig& config,
                  const Policy& policy, const AuditOptions& options,
                  const std::function<void(const StretchResult&)>& done);

/// Token files and label masks of `config` that are not those that the run read, by their digests:
/// one sentence each. Equal batches of some steps do not tell.
std::vector<std::string> unlike_inputs(const AuditedRun& recorded,
                                       const config::TrainConfig& config);

}  // namespace olmo::audit
