// Where two runs part.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/training/reference_distance.h"
#include "store/database/record_database.h"
#include "store/runs/recorded_run.h"

namespace olmo::report {

/// What the traces of operations tell about two runs that part.
struct TracedOperation {
  std::int64_t parted = 0;             ///< step at which the runs part
  std::optional<std::int64_t> traced;  ///< the first step whose traces differ, else the last one
                                       ///< that was compared; absent: none was traced on both sides
  std::string operation;               ///< the first that differs; empty: none does
  std::string reason;                  ///< as TraceDifference, A's trace being the first
  std::string to_run;                  ///< the command that would tell more; empty: there is none
};

/// A run whose traces can be read.
struct TracedRun {
  const store::RecordDatabase& records;
  const std::string& run_id;
};

/// The steps after the last at which the runs are known to agree, up to the one at which they part.
struct PartingSteps {
  std::int64_t after_equal = 1;  ///< the first that may have parted them
  std::int64_t parted = 0;
  /// The first after a state all of whose tensors are equal: a wrong bit may show in a loss only
  /// steps later, so chains that agree say less than traces.
  std::int64_t after_equal_state = 1;
};

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
  std::int64_t common_steps = 0;     ///< how many steps both have
  std::int64_t equal_steps = 0;      ///< how many of them agree, before the first that differs
  std::int64_t equal_through = 0;    ///< the last of those, by its number; 0: none
  std::int64_t first_different = 0;  ///< step; 0: none
  std::string first_field;           ///< a column of steps
  bool chained_alike = false;        ///< in that step: the chains are equal, and the field is not
  std::int64_t rejoined = 0;         ///< the first equal step or state after that; 0: none
  std::int64_t equal_batches = 0;    ///< steps of the common ones that saw the same batch
  std::optional<HashedState> equal_state;   ///< the last one before any that differs
  std::optional<HashedState> parted_state;  ///< the first one that differs
  std::optional<HashedState> last_state;
  /// Absent: the runs do not part, or in their start or batches.
  std::optional<TracedOperation> operation;
  ReferenceDistance reference_a, reference_b;
  std::optional<AuditedDistance> between;  ///< where both sides' distances are known
  std::string chain_a, chain_b;            ///< last chain hashes

  /// What differs first is something that the hash chains are over.
  [[nodiscard]] bool in_chain() const;
  /// Every step and state in common has the same bits, and there are some.
  [[nodiscard]] bool same_steps_and_states() const {
    return known && same_format && common_steps > 0 && first_different == 0 && !parted_state;
  }
  /// And so has every operation that both traced.
  [[nodiscard]] bool same_training() const {
    return same_steps_and_states() && !(operation && !operation->operation.empty());
  }
};

/// All that the runs tell without their databases: not `operation`, and for a step whose losses and
/// norms agree, `first_field` says no more than kSomeValue.
Identity find_identity(const store::RecordedRun& a, const store::RecordedRun& b);

/// One sentence without its full stop, of runs under portable numerics that part in something that
/// no chain is over, and have the same bits again later: what an update leaves different stays so,
/// and equal chains tell that it was not. Empty: there is no such contradiction.
std::string contradiction_of(const Identity& identity);

inline constexpr char kSomeValue[] = "a recorded value";

/// The same, with what the rows of the first step that differs and the traces tell.
Identity find_identity(const store::RecordedRun& a, const store::RecordedRun& b,
                       const TracedRun& records_a, const TracedRun& records_b);

/// Where to look for the first operation that differs; nothing if the runs do not part, or part in
/// their start or their batches.
std::optional<PartingSteps> parting_steps(const Identity& identity);

/// Looks for the first operation that differs in the steps that both runs traced, from the last
/// equal state up to the first one that was traced after they had parted. Throws Error(kDamaged)
/// for a trace that cannot be read.
TracedOperation find_operation(const PartingSteps& steps, const TracedRun& a, const TracedRun& b);

}  // namespace olmo::report
