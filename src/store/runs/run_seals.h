// Seals over what an attempt recorded: one for each table, so that no row can be altered, added or
// removed alone. States, traces, declarations and evaluations have seals of their own.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/hash.h"
#include "store/database/record_database.h"
#include "store/runs/run_records.h"
#include "store/runs/verify_record.h"

namespace olmo::store {

/// Of the run itself and its inputs, which no attempt changes: rows to be written with them.
std::vector<RecordDatabase::Row> seals_of_start(const RunRecord& run,
                                                std::span<const InputRecord> inputs);

/// Of all that the attempt recorded: rows to be written as it ends, by RecordDatabase::write_after.
/// `ended`: its row as it will be then.
std::vector<RecordDatabase::Row> seals_of_end(const RecordDatabase& db, const std::string& run_id,
                                              const AttemptRecord& ended);

/// Says that an attempt ends without seals, as its rows cannot be read back.
RecordDatabase::Row no_seals_of_end(const std::string& run_id, std::int64_t attempt);

/// A seal in the making: over the rows of a table, in their order.
struct RowSeal {
  Sha256 hash;
  std::int64_t rows = 0;
};

/// The seals over steps, made as these are read for something else: a million of them take long.
class StepSeals {
 public:
  StepSeals(const RecordDatabase& db, const std::string& run_id);
  /// The steps that survived, in their order: of each attempt its first ones.
  void add(const StepRecord& row);
  /// Of all steps of an attempt: those that a later one replaced are read.
  [[nodiscard]] RowSeal take(std::int64_t attempt);

 private:
  struct Part {
    RowSeal seal;
    std::int64_t last = -1;  ///< the step that was added last
  };
  const RecordDatabase& db_;
  const std::string& run_id_;
  std::map<std::int64_t, Part> parts_;  ///< by attempt; those that have a seal
};

/// What does not fit its seal, or has none though its attempt has ended; of an older version's
/// attempts nothing. Events and changes that came after an attempt's end are no part of it:
/// `checkpoints.deleted_utc`, `runs.status` and `runs.max_steps`.
std::vector<Finding> altered_parts(const RecordDatabase& db, const std::string& run_id,
                                   std::span<const AttemptRecord> attempts, StepSeals& steps);

}  // namespace olmo::store
