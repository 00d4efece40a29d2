// The run database: one SQLite file, any number of runs and evaluations.
//
//   runs ──┬─ attempts      every start and resume: where, with what, from which step, how it ended
//          ├─ ranks         the processes of an attempt: host, device, time by phase, bytes sent
//          ├─ phases        where the time of a minute's steps went, over all ranks
//          ├─ energy        joules by host and sensor; power_samples: watts every ten seconds
//          ├─ inputs        files that decide the result, with size and SHA-256
//          ├─ steps         one row per optimizer step and attempt
//          ├─ metrics       further numbers by name (a new metric needs no new column)
//          ├─ state_hashes  SHA-256 of every parameter and moment at an interval
//          ├─ checkpoints   what was saved, where, how fast; deleted_utc once retention removed it
//          ├─ state_seals   SHA-256 over the chain and a state's hashes
//          ├─ op_traces     SHA-256 of every operation's output in traced steps
//          ├─ trace_seals   SHA-256 over each step's trace
//          ├─ run_seals     SHA-256 over each attempt's rows of a table
//          ├─ audits        stretches that were trained again and compared
//          ├─ events        start, resume, signal, checkpoint, stop, error, warning, finish, …
//          ├─ declarations  margins that were fixed before another run was compared with this one
//          └─ tags          free words of the user
//
//   evaluations ──┬─ evaluation_tasks       the tasks and perplexity suites of each, how they ended
//                 ├─ evaluation_options     one row per continuation of an instance, scored
//                 ├─ evaluation_documents   one row per document of a perplexity suite, scored
//                 ├─ evaluation_metrics     the aggregated numbers
//                 └─ evaluation_seals       SHA-256 over all of these
//                 (store/evaluations/evaluation_seal.h)
//
// An evaluation names a run if the run made it or its checkpoint says so; the run's own rows may
// lie in another file. Rows of scores are the fields of core/evaluation_rows.h; a NULL number is
// NaN.
//
// An imported run has an attempt for each of its files. Its rows are in `imported_steps`, at a
// `position`: the step, or the tokens where its log tells no steps (`step` is NULL then, and `step`
// of its metrics are tokens).
//
// A crash and a resume leave rows of both attempts; the view `surviving_steps` follows the line
// that led to the present weights, `steps` keeps what was abandoned. `batch_hash`, `chain_hash` and
// digests are SHA-256 in hexadecimal; losses are in nats; times are UTC, ISO 8601, as the clock
// said: what came first is told by rowids, events and attempts. All floats hold the exact value
// (REAL is binary64).
//
// `PRAGMA application_id` is "OLMO"; `PRAGMA user_version` is the schema version: readers refuse a
// newer one.
#pragma once

namespace olmo::store {

inline constexpr int kSchemaVersion = 11;
inline constexpr int kApplicationId = 0x4F4C4D4F;  // "OLMO"

// Version 2 added the evaluations, 3 imported runs and energy, 4 traces and audits, 5 imports that
// tell tokens and no steps, and the seals of evaluations, 6 the format of the hash chain, 7
// declarations, 8 ranks: who trained, where the time of steps went, and the hosts of energy, 9 the
// seals of traces, 10 those of attempts, and the link that an attempt begins from, 11 where in the
// data it begins.

/// A table by which a version is known: it is the first that has it.
struct TableSince {
  const char* table;
  int version;
};
inline constexpr TableSince kTablesSince[] = {
    {"evaluations", 2},  {"imported_steps", 3}, {"audits", 4},     {"evaluation_seals", 5},
    {"declarations", 7}, {"ranks", 8},          {"trace_seals", 9}};

/// SQL that takes a database from version i to i + 1; entry 0 makes a new one.
extern const char* const kMigrations[kSchemaVersion];

}  // namespace olmo::store
