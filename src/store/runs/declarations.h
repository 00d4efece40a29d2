// Margins that were declared for a run (columns: store/database/schema.h).
#pragma once

#include <string>
#include <vector>

#include "store/database/record_database.h"

namespace olmo::store {

struct Declaration {
  std::int64_t declaration = 0;  ///< its number, from 1
  std::string created_utc = {};
  std::string who = {};
  std::string margins = {};  ///< e.g. `loss=0.01,macro=0.5`
  std::string record = {};   ///< what the run held then: its last chain hash, or its number of rows
  std::string sha256 = {};   ///< over all of these, the run and the declaration before
};

/// Makes a declaration durable, with an event of it. Number, time, record and hash are set here.
Declaration declare(RecordDatabase& db, const std::string& run_id, const std::string& who,
                    const std::string& margins);

/// Oldest first; none in a file of an older schema.
std::vector<Declaration> read_declarations(const RecordDatabase& db, const std::string& run_id);

/// What does not follow from its hash, was taken out of the row, or has an event and no row; one
/// sentence each. As with every seal, who alters a row and computes all hashes anew is not seen,
/// nor who removes the event, too.
std::vector<std::string> altered_declarations(const RecordDatabase& db, const std::string& run_id,
                                              const std::vector<Declaration>& declarations);

}  // namespace olmo::store
