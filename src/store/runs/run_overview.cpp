#include "store/runs/run_overview.h"

#include "store/runs/recorded_run.h"
#include "store/runs/run_facts.h"
#include "store/runs/run_line.h"
#include "store/runs/run_tables.h"

namespace olmo::store {
namespace {

void add_last_step(RunOverview& overview, const RecordDatabase& records, const RunLine& line) {
  const Stretch& end = line.stretches.back();
  const auto row = read_one(records, kSteps, "WHERE run_id = ? AND attempt = ? AND step = ?",
                            {line.run_id, end.attempt, end.last});
  if (!row) return;
  overview.step = row->step;
  overview.tokens = row->tokens;
  overview.ce_loss = row->ce_loss;
  overview.tokens_per_second = row->tokens_per_second;
  overview.seconds = row->seconds;
  overview.chain_hash = row->chain_hash;
}

void add_last_imported(RunOverview& overview, const RecordDatabase& records, const RunLine& line) {
  const auto row = last_imported(records, line.run_id);
  if (!row) return;
  overview.step = row->step;
  overview.tokens = row->tokens;
  overview.ce_loss = row->loss;
  overview.tokens_per_second = row->tokens_per_second;
  overview.seconds = row->seconds;
}

}  // namespace

RunOverview read_overview(const RecordDatabase& records, const RunRecord& run,
                          std::span<const AttemptRecord> attempts) {
  RunOverview overview{.run_id = run.run_id,
                       .name = run.name,
                       .status = run.status,
                       .created_utc = run.created_utc,
                       .n_parameters = {},
                       .max_steps = {},
                       .attempts = std::ssize(attempts),
                       .step = {},
                       .tokens = {},
                       .ce_loss = {},
                       .tokens_per_second = {},
                       .seconds = {},
                       .chain_hash = {},
                       .tags = {},
                       .evaluations = {}};
  // Of an imported run 0: not known.
  if (run.n_parameters != 0) overview.n_parameters = run.n_parameters;
  if (run.max_steps != 0) overview.max_steps = run.max_steps;
  const RunLine line = read_line(records, run, attempts);
  if (!line.empty()) {
    if (line.imported) {
      add_last_imported(overview, records, line);
    } else {
      add_last_step(overview, records, line);
    }
  }
  for (auto& tag : read_all(records, kTags, "WHERE run_id = ? ORDER BY tag", {run.run_id}))
    overview.tags.push_back(std::move(tag.tag));
  constexpr int kWithEvaluations = 2;
  if (records.schema_version() >= kWithEvaluations)
    overview.evaluations = count_of(records, "evaluations", run.run_id);
  return overview;
}

std::vector<RunOverview> read_overviews(const RecordDatabase& records) {
  std::vector<RunOverview> overviews;
  for (const auto& run : read_all(records, kRuns, "ORDER BY rowid", {}))
    overviews.push_back(read_overview(records, run, read_attempts(records, run.run_id)));
  return overviews;
}

RunOverview read_overview(const RecordDatabase& records, const std::string& run_id) {
  return read_overview(records, read_run_record(records, run_id), read_attempts(records, run_id));
}

}  // namespace olmo::store
