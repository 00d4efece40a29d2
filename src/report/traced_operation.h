#pragma once

#include <optional>
#include <string>

#include "store/record_database.h"

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

/// Looks for the first operation that differs in the steps that both runs traced, from the last
/// equal state up to the first one that was traced after they had parted. Throws Error(kDamaged)
/// for a trace that cannot be read.
TracedOperation find_operation(const PartingSteps& steps, const TracedRun& a, const TracedRun& b);

}  // namespace olmo::report
