#include "store/runs/run_seals.h"

#include <map>
#include <optional>
#include <string_view>
#include <type_traits>

#include "store/database/value_hash.h"
#include "store/runs/run_tables.h"

namespace olmo::store {
namespace {

constexpr int kSince = 10;  ///< schema version

/// A row of run_seals.
struct RunSeal {
  std::int64_t attempt = 0;
  std::string part;                   ///< a table; empty: of the attempt nothing is sealed
  std::int64_t rows = 0;              ///< that it is over
  std::optional<std::string> sha256;  ///< nothing: with an empty part
};

constexpr Column<RunSeal> kSealColumns[] = {
    column<&RunSeal::attempt>("attempt"),
    column<&RunSeal::part>("part"),
    column<&RunSeal::rows>("rows"),
    column<&RunSeal::sha256>("sha256"),
};
constexpr Table<RunSeal> kRunSeals{"run_seals", "run_id", kSealColumns, kSince};

/// Whether a column goes on to change after its row was sealed.
bool changes(std::string_view table, std::string_view column) {
  return (table == kCheckpoints.name && column == "deleted_utc") ||
         (table == kRuns.name && (column == "status" || column == "max_steps"));
}

template <class Record>
RowSeal seal_begun(const Table<Record>& table, const std::string& run_id, std::int64_t attempt) {
  RowSeal seal;
  for (const SqlValue& value :
       {SqlValue(std::string(table.name)), SqlValue(run_id), SqlValue(attempt)})
    add_to(seal.hash, value);
  return seal;
}

template <class Record>
void add_row(const Table<Record>& table, const Record& record, RowSeal& seal) {
  for (const auto& column : table.columns) {
    if (changes(table.name, column.name)) continue;
    const SqlValue value = column.get(record);
    if (column.since > kSince) {  // counts where it holds something: so older seals stay
      if (std::holds_alternative<std::monostate>(value)) continue;
      add_to(seal.hash, std::string(column.name));
    }
    add_to(seal.hash, value);
  }
  ++seal.rows;
}

template <class Record>
RunSeal finished(const Table<Record>& table, std::int64_t attempt, RowSeal seal) {
  return {.attempt = attempt,
          .part = table.name,
          .rows = seal.rows,
          .sha256 = seal.hash.finish().hex()};
}

/// Adds rows that the database holds, the first `most`; below 0: all.
template <class Record>
void add_rows(const RecordDatabase& db, const Table<Record>& table, const std::string& which,
              std::vector<SqlValue> parameters, std::int64_t most, RowSeal& seal) {
  parameters.emplace_back(most);
  for_each(db, table, which + " LIMIT ?", parameters,
           [&](const Record& record) { add_row(table, record, seal); });
}

constexpr const char* kOfAttempt = "WHERE run_id = ? AND attempt = ?";

/// Calls visit(table, order) for each table of which an attempt has rows of its own.
template <class Visit>
void visit_parts(const Visit& visit) {
  visit(kSteps, "step");
  visit(kMetrics, "step, name");
  visit(kCheckpoints, "step");
  visit(kEvents, "event_id");
  visit(kEnergy, "host, source, device");
  visit(kPowerSamples, "host, source, device, seconds");
  visit(kRanks, "rank");
  visit(kPhases, "first_step, phase");
}

/// By their parts.
using PartSeals = std::map<std::string, RunSeal>;

std::map<std::int64_t, PartSeals> read_seals(const RecordDatabase& db, const std::string& run_id) {
  std::map<std::int64_t, PartSeals> seals;
  for_each(db, kRunSeals, "WHERE run_id = ?", {run_id},
           [&](const RunSeal& seal) { seals[seal.attempt][seal.part] = seal; });
  return seals;
}

/// Compares what a database holds with the seals of one attempt.
class PartCheck {
 public:
  PartCheck(const RecordDatabase& db, const std::string& run_id, const PartSeals& seals,
            std::int64_t attempt, std::vector<Finding>& findings)
      : db_(db), run_id_(run_id), seals_(seals), attempt_(attempt), findings_(findings) {}

  void check_start() {
    check(kRuns, "values of the run's own row", "WHERE run_id = ?", {run_id_});
    check(kInputs, "rows of its inputs", "WHERE run_id = ? ORDER BY rowid", {run_id_});
  }

  void check_end(StepSeals& steps) {
    place_ = "attempt " + std::to_string(attempt_) + ": ";
    const std::vector<SqlValue> parameters = {run_id_, attempt_};
    check(kAttempts, "values of its own row", kOfAttempt, parameters);
    visit_parts([&](const auto& table, const std::string& order) {
      const std::string what = "rows of " + std::string(table.name);
      if constexpr (std::is_same_v<decltype(table), const Table<StepRecord>&>) {
        if (const auto* seal = sealed(table, what))
          compare(*seal, finished(table, attempt_, steps.take(attempt_)), what);
      } else {
        check(table, what, kOfAttempt + (" ORDER BY " + order), parameters);
      }
    });
  }

 private:
  template <class Record>
  void check(const Table<Record>& table, const std::string& what, const std::string& which,
             const std::vector<SqlValue>& parameters) {
    const RunSeal* seal = sealed(table, what);
    if (seal == nullptr) return;
    // Audits and declarations of later days are events, too.
    const bool grows = std::string_view(table.name) == kEvents.name;
    RowSeal found = seal_begun(table, run_id_, attempt_);
    add_rows(db_, table, which, parameters, grows ? seal->rows : -1, found);
    compare(*seal, finished(table, attempt_, found), what);
  }

  /// Null, and it is said, if there is none.
  template <class Record>
  const RunSeal* sealed(const Table<Record>& table, const std::string& what) {
    const auto found = seals_.find(table.name);
    if (found != seals_.end()) return &found->second;
    findings_.push_back(
        {0, table.name, place_ + "the seal over " + what + " was removed from run_seals"});
    return nullptr;
  }

  void compare(const RunSeal& seal, const RunSeal& found, const std::string& what) {
    if (found.rows == seal.rows && found.sha256 == seal.sha256) return;
    std::string sentence =
        place_ + what + " were altered, added or removed: the seal over them does not fit";
    if (found.rows != seal.rows)
      sentence += ", of " + std::to_string(seal.rows) + " there are " + std::to_string(found.rows);
    findings_.push_back({0, seal.part, sentence});
  }

  const RecordDatabase& db_;
  const std::string& run_id_;
  const PartSeals& seals_;
  std::int64_t attempt_;
  std::string place_ = "the run: ";  ///< what a sentence begins with
  std::vector<Finding>& findings_;
};

}  // namespace

StepSeals::StepSeals(const RecordDatabase& db, const std::string& run_id)
    : db_(db), run_id_(run_id) {
  if (db.schema_version() < kSince) return;
  for (const auto& [attempt, seals] : read_seals(db, run_id))
    if (seals.contains(kSteps.name)) parts_[attempt].seal = seal_begun(kSteps, run_id, attempt);
}

void StepSeals::add(const StepRecord& row) {
  const auto part = parts_.find(row.attempt);
  if (part == parts_.end()) return;
  add_row(kSteps, row, part->second.seal);
  part->second.last = row.step;
}

RowSeal StepSeals::take(std::int64_t attempt) {
  Part& part = parts_[attempt];
  add_rows(db_, kSteps, kOfAttempt + std::string(" AND step > ? ORDER BY step"),
           {run_id_, attempt, part.last}, -1, part.seal);
  return part.seal;
}

std::vector<RecordDatabase::Row> seals_of_start(const RunRecord& run,
                                                std::span<const InputRecord> inputs) {
  constexpr std::int64_t kFirst = 1;
  RowSeal of_run = seal_begun(kRuns, run.run_id, kFirst);
  add_row(kRuns, run, of_run);
  RowSeal of_inputs = seal_begun(kInputs, run.run_id, kFirst);
  for (const auto& input : inputs) add_row(kInputs, input, of_inputs);
  return rows_for<kRunSeals>(run.run_id, std::vector{finished(kRuns, kFirst, of_run),
                                                     finished(kInputs, kFirst, of_inputs)});
}

std::vector<RecordDatabase::Row> seals_of_end(const RecordDatabase& db, const std::string& run_id,
                                              const AttemptRecord& ended) {
  RowSeal own = seal_begun(kAttempts, run_id, ended.attempt);
  add_row(kAttempts, ended, own);
  std::vector<RunSeal> seals = {finished(kAttempts, ended.attempt, own)};
  visit_parts([&](const auto& table, const std::string& order) {
    RowSeal seal = seal_begun(table, run_id, ended.attempt);
    add_rows(db, table, kOfAttempt + (" ORDER BY " + order), {run_id, ended.attempt}, -1, seal);
    seals.push_back(finished(table, ended.attempt, seal));
  });
  return rows_for<kRunSeals, Insert::kReplace>(run_id, seals);
}

RecordDatabase::Row no_seals_of_end(const std::string& run_id, std::int64_t attempt) {
  return row_for<kRunSeals, Insert::kIgnore>(
      run_id, {.attempt = attempt, .part = "", .rows = 0, .sha256 = {}});
}

std::vector<Finding> altered_parts(const RecordDatabase& db, const std::string& run_id,
                                   std::span<const AttemptRecord> attempts, StepSeals& steps) {
  if (db.schema_version() < kSince) return {};
  auto seals = read_seals(db, run_id);
  std::vector<Finding> findings;
  for (const auto& attempt : attempts) {
    const PartSeals& of_attempt = seals[attempt.attempt];
    if (of_attempt.contains("")) continue;
    PartCheck check(db, run_id, of_attempt, attempt.attempt, findings);
    if (attempt.attempt == 1) check.check_start();
    if (!attempt.ended_utc.empty()) check.check_end(steps);
  }
  return findings;
}

}  // namespace olmo::store
