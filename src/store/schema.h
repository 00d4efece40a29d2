// The run database: one SQLite file, any number of runs.
//
//   runs ──┬─ attempts      every start and resume: where, with what, from which step, how it ended
//          ├─ inputs        files that decide the result, with size and SHA-256
//          ├─ steps         one row per optimizer step and attempt
//          ├─ metrics       further numbers by name (a new metric needs no new column)
//          ├─ state_hashes  SHA-256 of every parameter and moment at an interval
//          ├─ checkpoints   what was saved, where, how fast; deleted_utc once retention removed it
//          ├─ events        start, resume, signal, checkpoint, stop, error, warning, finish
//          └─ tags          free words of the user
//
// A crash and a resume leave rows of both attempts; the view `surviving_steps` follows the line
// that led to the present weights, `steps` keeps what was abandoned. `batch_hash`, `chain_hash` and
// digests are SHA-256 in hexadecimal; losses are in nats; times are UTC, ISO 8601. All floats hold
// the exact value (REAL is binary64).
//
// `PRAGMA application_id` is "OLMO"; `PRAGMA user_version` is the schema version: readers refuse a
// newer one.
#pragma once

namespace olmo::store {

inline constexpr int kSchemaVersion = 1;
inline constexpr int kApplicationId = 0x4F4C4D4F;  // "OLMO"

/// SQL that takes a database from version i to i + 1; entry 0 makes a new one.
extern const char* const kMigrations[kSchemaVersion];

}  // namespace olmo::store
