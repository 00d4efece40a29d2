#include "store/runs/op_traces.h"

#include <iterator>
#include <limits>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/hash.h"
#include "store/runs/run_line.h"

namespace olmo::store {
namespace {

constexpr int kSinceTraces = 4;
constexpr int kSinceSeals = 9;

/// A row of op_traces as it lies there: the digest may be none.
struct TraceRow {
  std::string operation;
  std::string sha256;
};

struct TraceKey {
  std::int64_t attempt = 0, audit = 0, step = 0;
  auto operator<=>(const TraceKey&) const = default;
};

std::string seal_of(const std::string& run_id, const TraceKey& key,
                    std::span<const TraceRow> rows) {
  Sha256 seal;
  const auto add = [&](const std::string& text) { seal.update_u64(text.size()).update(text); };
  add(run_id);
  for (const auto number : {key.attempt, key.audit, key.step})
    seal.update_u64(static_cast<std::uint64_t>(number));
  seal.update_u64(rows.size());
  for (const TraceRow& row : rows) {
    add(row.operation);
    add(row.sha256);
  }
  return seal.finish().hex();
}

/// By trace. Nothing: of a version that sealed none.
using TraceSeals = std::map<TraceKey, std::optional<std::string>>;

TraceSeals read_trace_seals(const RecordDatabase& db, const std::string& run_id, std::int64_t first,
                            std::int64_t last) {
  TraceSeals seals;
  db.query(
      "SELECT attempt, audit, step, sha256 FROM trace_seals WHERE run_id = ? AND step BETWEEN ? "
      "AND ?",
      {run_id, first, last}, [&](const auto&, const auto& row) {
        const auto number = [&](std::size_t i) { return std::get<std::int64_t>(row[i]); };
        const auto* sha256 = std::get_if<std::string>(&row[3]);
        seals[{number(0), number(1), number(2)}] =
            sha256 == nullptr ? std::nullopt : std::optional(*sha256);
      });
  return seals;
}

/// Whether the seals have one of the trace that fits it, or know that it has none.
bool fits(const TraceSeals& seals, const std::string& run_id, const TraceKey& key,
          std::span<const TraceRow> rows) {
  const auto seal = seals.find(key);
  return seal != seals.end() && (!seal->second || *seal->second == seal_of(run_id, key, rows));
}

/// Traces of steps that the run has left are of another training. Audits, which compute the present
/// line, have the attempt 0.
std::string trace_is_on_line() { return "(t.attempt = 0 OR " + is_on_line("t") + ")"; }

[[noreturn]] void refuse(const RecordDatabase& db, std::int64_t step, const std::string& what) {
  throw Error(ErrorKind::kDamaged,
              db.path().string() + ": the trace of step " + std::to_string(step) + " " + what);
}

}  // namespace

void record_trace(RecordDatabase& db, const std::string& run_id, const TraceSource& source,
                  std::int64_t step, std::span<const OpDigest> trace) {
  std::vector<RecordDatabase::Row> rows;
  std::vector<TraceRow> sealed;
  for (const char* sql :
       {"DELETE FROM op_traces WHERE run_id = ? AND attempt = ? AND audit = ? AND step = ?",
        "DELETE FROM trace_seals WHERE run_id = ? AND attempt = ? AND audit = ? AND step = ?"})
    rows.push_back({sql, {run_id, source.attempt, source.audit, step}});
  for (const OpDigest& output : trace) {
    rows.push_back({"INSERT INTO op_traces VALUES (?, ?, ?, ?, ?, ?, ?)",
                    {run_id, source.attempt, source.audit, step, std::ssize(sealed),
                     output.operation, output.digest.hex()}});
    sealed.push_back({output.operation, output.digest.hex()});
  }
  rows.push_back({"INSERT INTO trace_seals VALUES (?, ?, ?, ?, ?)",
                  {run_id, source.attempt, source.audit, step,
                   seal_of(run_id, {source.attempt, source.audit, step}, sealed)}});
  db.write(std::move(rows));
}

std::vector<OpDigest> read_trace(const RecordDatabase& db, const std::string& run_id,
                                 std::int64_t step) {
  if (db.schema_version() < kSinceTraces) return {};
  std::vector<TraceRow> rows;
  TraceKey key{.attempt = 0, .audit = 0, .step = step};
  // Where the training has none, the latest audit's stands for it.
  db.query(
      "SELECT operation, sha256, attempt, audit FROM op_traces WHERE run_id = ?1 AND step = ?2 AND "
      "(attempt, audit) = (SELECT attempt, audit FROM op_traces AS t WHERE run_id = ?1 AND step = "
      "?2 AND " +
          trace_is_on_line() + " ORDER BY attempt DESC, audit DESC LIMIT 1) ORDER BY ordinal",
      {run_id, step}, [&](const auto&, const auto& row) {
        rows.push_back({std::get<std::string>(row[0]), std::get<std::string>(row[1])});
        key.attempt = std::get<std::int64_t>(row[2]);
        key.audit = std::get<std::int64_t>(row[3]);
      });
  if (rows.empty()) return {};
  std::vector<OpDigest> trace;
  for (const auto& row : rows) {
    try {
      trace.push_back({row.operation, Digest::from_hex(row.sha256)});
    } catch (const Error&) {
      refuse(db, step, "holds no SHA-256 of " + row.operation + ", got '" + row.sha256 + "'");
    }
  }
  if (db.schema_version() >= kSinceSeals &&
      !fits(read_trace_seals(db, run_id, step, step), run_id, key, rows))
    refuse(db, step, "does not fit its seal: rows of op_traces were altered, added or removed");
  return trace;
}

namespace {

std::vector<std::int64_t> steps_of_traces(const RecordDatabase& db, const std::string& which,
                                          const std::vector<SqlValue>& parameters) {
  std::vector<std::int64_t> steps;
  if (db.schema_version() < kSinceTraces) return steps;
  db.query(
      "SELECT DISTINCT step FROM op_traces AS t WHERE run_id = ? AND " + which + " ORDER BY step",
      parameters,
      [&](const auto&, const auto& row) { steps.push_back(std::get<std::int64_t>(row[0])); });
  return steps;
}

}  // namespace

std::vector<std::int64_t> steps_traced_by(const RecordDatabase& db, const std::string& run_id,
                                          std::int64_t attempt) {
  return steps_of_traces(db, "attempt = ?", {run_id, attempt});
}

std::vector<std::int64_t> traced_steps(const RecordDatabase& db, const std::string& run_id) {
  return steps_of_traces(db, trace_is_on_line(), {run_id});
}

std::set<std::int64_t> altered_traces(const RecordDatabase& db, const std::string& run_id) {
  std::set<std::int64_t> altered;
  if (db.schema_version() < kSinceSeals) return altered;
  constexpr auto kLast = std::numeric_limits<std::int64_t>::max();
  TraceSeals seals = read_trace_seals(db, run_id, std::numeric_limits<std::int64_t>::min(), kLast);
  TraceKey key{};
  std::vector<TraceRow> rows;
  const auto end_trace = [&] {
    if (!rows.empty() && !fits(seals, run_id, key, rows)) altered.insert(key.step);
    if (!rows.empty()) seals.erase(key);
    rows.clear();
  };
  db.query(
      "SELECT attempt, audit, step, operation, sha256 FROM op_traces WHERE run_id = ? ORDER BY "
      "attempt, audit, step, ordinal",
      {run_id}, [&](const auto&, const auto& row) {
        const auto number = [&](std::size_t i) { return std::get<std::int64_t>(row[i]); };
        const TraceKey next{number(0), number(1), number(2)};
        if (next != key) end_trace();
        key = next;
        rows.push_back({std::get<std::string>(row[3]), std::get<std::string>(row[4])});
      });
  end_trace();
  for (const auto& [left, seal] : seals) altered.insert(left.step);  // their rows are gone
  return altered;
}

}  // namespace olmo::store
