// What pages and lists show of each run beyond its overview: its config, its last attempt, its
// host.
#pragma once

#include <string>
#include <vector>

#include "store/database/record_database.h"
#include "store/runs/run_overview.h"
#include "store/runs/run_records.h"

namespace olmo::store {

struct RunSummary : RunOverview {
  RunRecord run;
  bool imported = false;
  AttemptRecord last_attempt = {};
  std::string host = {};  ///< of the last attempt; empty: not known
};

/// All runs of the database, oldest first, at some index lookups a run. Throws as
/// RecordDatabase::query.
std::vector<RunSummary> run_summaries(const RecordDatabase& records);

}  // namespace olmo::store
