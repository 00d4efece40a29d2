// Where two runs part, and how far each is from the portable reference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/reference_distance.h"
#include "report/traced_operation.h"
#include "store/recorded_run.h"

namespace olmo::report {

/// Weights and moments at a step at which both sides hashed them. The seal over a step's hashes and
/// its chain is no tensor and tells no more than the chains do.
struct HashedState {
  std::int64_t step = 0;
  std::int64_t tensors = 0, different = 0;
  std::vector<std::string> names;  ///< of the first kNamedTensors that differ, as `part/name`
};

inline constexpr std::size_t kNamedTensors = 5;

struct Identity {
  bool known = false;  ///< both sides have a hash chain
  bool same_format =
      true;  ///< of the chains; else batches are unknown and only losses are compared
  std::int64_t common_steps = 0;            ///< steps that both have
  std::int64_t equal_steps = 0;             ///< chains agree through this step
  std::int64_t first_different = 0;         ///< step; 0: none
  std::string first_field;                  ///< batch_hash, ce_loss, grad_norm, z_loss
  std::int64_t equal_batches = 0;           ///< steps of the common ones that saw the same batch
  std::optional<HashedState> equal_state;   ///< the last one before any that differs
  std::optional<HashedState> parted_state;  ///< the first one that differs
  std::optional<HashedState> last_state;
  std::optional<TracedOperation> operation;  ///< absent: the runs do not part, or in their batches
  ReferenceDistance reference_a, reference_b;
  std::optional<AuditedDistance> between;  ///< where both sides' distances are known
  std::string chain_a, chain_b;            ///< last chain hashes

  /// Every step and state in common has the same bits, and there are some.
  [[nodiscard]] bool same_training() const {
    return known && same_format && common_steps > 0 && first_different == 0 && !parted_state;
  }
};

/// All but `operation`, for which parting_steps() and find_operation() are there.
Identity find_identity(const store::RecordedRun& a, const store::RecordedRun& b);

/// Where to look for the first operation that differs; nothing if the runs do not part, or part in
/// their start or their batches.
std::optional<PartingSteps> parting_steps(const Identity& identity);

}  // namespace olmo::report
