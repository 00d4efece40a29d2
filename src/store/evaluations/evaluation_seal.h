// A seal over the rows of an evaluation, so that none can be altered, removed or added alone.
//
// Each task's seal is the SHA-256 over what was evaluated and how (its row of `evaluations` without
// status and end), the task's own row, and every row of its options, documents and metrics, all
// columns, in the order of their keys. The seal of the empty task name is over the seals of all
// tasks. They are written when the evaluation ends and are gone while it goes on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/database/record_database.h"

namespace olmo::store {

/// By task, from the rows that are there.
std::map<std::string, std::string> compute_seals(const RecordDatabase& records,
                                                 const std::string& evaluation_id);

/// What became of an evaluation since it was recorded.
struct SealCheck {
  bool sealed = false;               ///< not: an older program wrote it, or it never ended
  std::vector<std::string> altered;  ///< one sentence each
};
SealCheck check_seals(const RecordDatabase& records, const std::string& evaluation_id);

/// The checks of one database, of which each evaluation's is made once: it reads all its rows.
class SealChecks {
 public:
  const SealCheck& of(const RecordDatabase& records, const std::string& evaluation_id) {
    const auto found = made_.find(evaluation_id);
    if (found != made_.end()) return found->second;
    return made_.emplace(evaluation_id, check_seals(records, evaluation_id)).first->second;
  }

 private:
  std::map<std::string, SealCheck> made_;
};

}  // namespace olmo::store
