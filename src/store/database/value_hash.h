// Values of rows as parts of a digest.
#pragma once

#include "core/hash.h"
#include "store/database/sqlite.h"

namespace olmo::store {

/// The value with its type; NULL has no bits, and neither has NaN, which SQLite stores as NULL.
void add_to(Sha256& hash, const SqlValue& value);

}  // namespace olmo::store
