#include "store/runs/recorded_run.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/recorded_json.h"
#include "core/hash.h"
#include "store/runs/op_traces.h"
#include "store/runs/run_line.h"
#include "store/runs/run_seals.h"
#include "store/runs/run_tables.h"

namespace olmo::store {
namespace {

constexpr std::size_t kMostFindings = 1000;

/// The first 64 bits of a digest; 0 of a text that is none.
std::uint64_t prefix(const std::string& hex) {
  std::uint64_t value = 0;
  if (hex.size() == 64) std::from_chars(hex.data(), hex.data() + 16, value, 16);
  return value;
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

template <class Visit>
void for_each_surviving(const RecordDatabase& records, const std::string& run_id,
                        const std::vector<AttemptRecord>& attempts, const std::string& more,
                        std::vector<SqlValue> parameters, const Visit& visit) {
  // An attempt at a time, so that few steps of many are found by their key.
  parameters.insert(parameters.begin(), {run_id, std::int64_t{0}, std::int64_t{0}});
  for (const Stretch& stretch : stretches_of(attempts)) {
    parameters[1] = stretch.attempt;
    parameters[2] = stretch.last;
    for_each(records, kSteps,
             "WHERE run_id = ? AND attempt = ? AND step <= ? " + more + " ORDER BY step",
             parameters, visit);
  }
}

/// While it lives, all that is read is of one moment, whatever a training writes. (A file that
/// nobody wrote to is opened anew once somebody does; then it is of two.) A savepoint may lie
/// within a transaction, and is one by itself where there is none.
class Snapshot {
 public:
  explicit Snapshot(const RecordDatabase& records) : held_(records.lock()), records_(records) {
    step("SAVEPOINT snapshot");
  }
  ~Snapshot() {
    try {
      step("RELEASE snapshot");
    } catch (const std::exception&) {  // the file was opened anew, or cannot be read any more
    }
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

 private:
  void step(const char* sql) const { records_.connection().prepare(sql).step(); }

  std::unique_lock<std::recursive_mutex> held_;  ///< another thread may write by this connection
  const RecordDatabase& records_;
};

/// The first attempt that began where the run did; null: there is none at all.
const AttemptRecord* first_of(const std::vector<AttemptRecord>& attempts) {
  const auto first = std::ranges::find(attempts, start_of(attempts), &AttemptRecord::start_step);
  return first == attempts.end() ? nullptr : &*first;
}

/// The chain before the run's first step. Nothing where it is not recorded.
std::optional<Digest> start_link_of(const std::vector<AttemptRecord>& attempts) {
  const auto* first = first_of(attempts);
  return first == nullptr ? std::nullopt : digest_of(first->start_link);
}

/// Attempts that went on from a step which no later one has replaced, by that step.
std::map<std::int64_t, const AttemptRecord*> starts_on_line(
    const std::vector<AttemptRecord>& attempts) {
  std::map<std::int64_t, const AttemptRecord*> starts;
  for (const auto& attempt : attempts) {
    starts.erase(starts.upper_bound(attempt.start_step), starts.end());
    if (!attempt.start_link.empty()) starts[attempt.start_step] = &attempt;
  }
  return starts;
}

Finding other_start(const AttemptRecord& attempt) {
  const std::string step = std::to_string(attempt.start_step);
  return {attempt.start_step, "start_link",
          "step " + step + ": attempt " + std::to_string(attempt.attempt) +
              " went on from a state after step " + step + " with the chain " +
              attempt.start_link.substr(0, 16) +
              "…, and the record's step has another: one of "
              "them was altered"};
}

/// Reads the parts of a run in the order in which one needs another.
class RunReader {
 public:
  RunReader(const RecordDatabase& records, const std::string& run_id)
      : records_(records), id_(run_id) {}

  RecordedRun read() {
    static_cast<RunRecord&>(run_) = read_run_record(records_, id_);
    if (run_.chain_format < 1 || run_.chain_format > kChainFormat)
      throw Error(ErrorKind::kDamaged, records_.path().string() + ": run " + id_ +
                                           ": its hash chain has format " +
                                           std::to_string(run_.chain_format) + ", which never was");
    read_parts();
    run_.imported = run_.experiment_digest.empty();
    if (run_.imported) {
      read_imported();
    } else {
      read_steps();
    }
    require_own_rows();
    return std::move(run_);
  }

 private:
  template <class Record>
  std::vector<Record> all(const Table<Record>& table, const std::string& order) {
    return read_all(records_, table, std::string(kOfRun) + order, {id_});
  }

  void read_parts() {
    run_.attempts = read_attempts(records_, id_);
    run_.inputs = read_inputs(records_, id_);
    run_.events = all(kEvents, "ORDER BY event_id");
    for (const auto& tag : all(kTags, "ORDER BY tag")) run_.tags.push_back(tag.tag);
    run_.energy = read_energy(records_, id_);
    run_.ranks = all(kRanks, "ORDER BY attempt, rank");
    run_.phases = all(kPhases, "ORDER BY attempt, first_step, phase");
    run_.audits = read_audits(records_, id_);
    for (auto& point : all(kMetrics, "ORDER BY name, step, attempt")) {
      if (run_.metrics.empty() || run_.metrics.back().name != point.name)
        run_.metrics.push_back({.name = std::move(point.name)});
      RecordedMetric& metric = run_.metrics.back();
      ++metric.points;
      metric.last_step = point.step;
      metric.last = point.value;
    }
    for (auto& row : all(kCheckpoints, "AND deleted_utc IS NULL AND " + is_on_line("checkpoints") +
                                           " ORDER BY attempt"))
      run_.checkpoints[row.step] = std::move(row);
    for (auto& seal : all(kStateSeals, "AND " + is_on_line("state_seals") + " ORDER BY attempt"))
      run_.state_seals[seal.step] = seal.sha256;
    // Of a step that several attempts hashed, the last counts.
    for_each(records_, kStateHashes,
             kOfRun + ("AND " + is_on_line("state_hashes")) + " ORDER BY step, attempt, part, name",
             {id_}, [&](const StateHash& row) {
               auto& hashes = run_.state_hashes[row.step];
               if (!hashes.empty() && hashes.front().attempt != row.attempt) hashes.clear();
               hashes.push_back(row);
             });
  }

  void read_step_seconds() {
    records_.query("SELECT attempt, sum(seconds) FROM steps WHERE run_id = ? GROUP BY attempt",
                   {id_}, [&](const auto&, const auto& row) {
                     const auto* attempt = std::get_if<std::int64_t>(&row[0]);
                     const auto* seconds = std::get_if<double>(&row[1]);
                     if (attempt != nullptr && seconds != nullptr)
                       run_.step_seconds[*attempt] = *seconds;
                   });
  }

  void read_steps() {
    read_step_seconds();
    const std::int64_t first = start_of(run_.attempts);
    StepVerifier verifier(run_, first, start_link_of(run_.attempts));
    const auto starts = starts_on_line(run_.attempts);
    // Older records, whose states have no seals, have older chains, too.
    SealedStates states{run_.state_hashes, run_.state_seals, {}, run_.chain_format > 1, first};
    const auto note_link = [&] {
      if (run_.state_seals.contains(verifier.step()) && verifier.link())
        states.links[verifier.step()] = *verifier.link();
    };
    note_link();
    StepSeals seals(records_, id_);
    StepColumns& steps = run_.steps;
    for_each_surviving(records_, id_, run_.attempts, "", {}, [&](const StepRecord& row) {
      std::vector<Finding> found;
      verifier.add(row, found);
      add_damage(std::move(found));
      seals.add(row);
      note_link();
      if (const auto start = starts.find(row.step);
          start != starts.end() && start->second->start_link != row.chain_hash)
        add_damage({other_start(*start->second)});
      steps.step.push_back(row.step);
      steps.tokens.push_back(row.tokens);
      steps.loss.push_back(row.ce_loss);
      steps.loss_per_label.push_back(row.ce_loss_per_label);
      steps.masked_instances.push_back(row.masked_instances);
      steps.epoch.push_back(row.epoch);
      steps.grad_norm.push_back(row.grad_norm);
      steps.lr.push_back(row.lr);
      steps.max_grad_norm.push_back(row.max_grad_norm.value_or(kNone));
      steps.clipping_rate.push_back(row.clipping_rate.value_or(kNone));
      steps.seconds.push_back(row.seconds);
      steps.tokens_per_second.push_back(row.tokens_per_second);
      steps.mfu.push_back(row.mfu.value_or(kNone));
      steps.batch.push_back(prefix(row.batch_hash));
      steps.chain.push_back(prefix(row.chain_hash));
      steps.values.push_back(digest_of_values(row));
      run_.last_chain = row.chain_hash;
    });
    std::vector<Finding> found;
    verify_seals(states, found);
    for (const std::int64_t step : altered_traces(records_, id_))
      found.push_back({step, "op_traces",
                       "step " + std::to_string(step) +
                           ": a trace of its operations does not fit its seal: rows of op_traces "
                           "were altered, added or removed"});
    verify_end(run_, verifier.step(), found);
    add_damage(std::move(found));
    add_damage(altered_parts(records_, id_, run_.attempts, seals));
  }

  void read_imported() {
    StepColumns& steps = run_.steps;
    std::optional<ImportedStepRecord> before;
    const auto number = [](const std::optional<double>& value) { return value.value_or(kNone); };
    for_each(
        records_, kImportedSteps, "WHERE run_id = ? ORDER BY 1", {id_},
        [&](const ImportedStepRecord& row) {
          std::vector<Finding> found;
          verify_imported(row, before ? &*before : nullptr, found);
          add_damage(std::move(found));
          before = row;
          if (!row.tokens) run_.tokens_known = false;
          if (!row.step) steps.steps_known = false;
          steps.step.push_back(row.position);
          steps.tokens.push_back(row.tokens.value_or(0));
          steps.loss.push_back(number(row.loss));
          steps.grad_norm.push_back(number(row.grad_norm));
          steps.lr.push_back(number(row.lr));
          steps.seconds.push_back(number(row.seconds));
          steps.tokens_per_second.push_back(number(row.tokens_per_second));
          steps.tokens_per_second_per_device.push_back(number(row.tokens_per_second_per_device));
        });
    if (!run_.tokens_known) steps.tokens = steps.step;
  }

  /// A log has no experiment, and what has one is no log.
  void require_own_rows() {
    const std::string others = run_.imported ? "steps" : "imported_steps";
    if (!run_.imported && records_.schema_version() < kImportedSteps.since) return;
    bool found = false;
    records_.query("SELECT 1 FROM " + others + " WHERE run_id = ? LIMIT 1", {id_},
                   [&](const auto&, const auto&) { found = true; });
    if (!found) return;
    const std::string what = run_.imported
                                 ? "a training recorded, and its experiment_digest is gone"
                                 : "a log told, and it has the experiment_digest of a training";
    add_damage(
        {{0, "experiment_digest", "the run has steps that " + what + ": altered or damaged"}});
  }

  void add_damage(std::vector<Finding> found) {
    for (auto& finding : found)
      if (run_.damage.size() < kMostFindings) run_.damage.push_back(std::move(finding));
  }

  const RecordDatabase& records_;
  const std::string& id_;
  RecordedRun run_;
};

}  // namespace

RecordedRun read_run(const RecordDatabase& records, const std::string& run_id) {
  const Snapshot snapshot(records);
  return RunReader(records, run_id).read();
}

nlohmann::json environment_of(const RecordedRun& run) {
  if (run.attempts.empty()) return nlohmann::json::object();
  auto json = recorded_json(run.attempts.back().environment);
  return json.is_object() ? json : nlohmann::json::object();
}

bool is_branch(const RecordedRun& run) {
  return !run.attempts.empty() && !run.attempts.front().resumed_from.empty();
}

std::int64_t start_of(const std::vector<AttemptRecord>& attempts) {
  std::int64_t start = attempts.empty() ? 0 : attempts.front().start_step;
  for (const auto& attempt : attempts) start = std::min(start, attempt.start_step);
  return start;
}

std::optional<DataPosition> data_begin_of(const std::vector<AttemptRecord>& attempts) {
  const auto unsigned_of = [](std::int64_t value) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
  };
  const auto* first = first_of(attempts);
  if (first == nullptr || !first->start_epoch || !first->start_instance) return std::nullopt;
  return DataPosition{.step = unsigned_of(first->start_step),
                      .epoch = unsigned_of(*first->start_epoch),
                      .instance = unsigned_of(*first->start_instance)};
}

std::int64_t devices_of(const std::vector<RankRecord>& ranks) {
  std::set<std::string> hosts;
  std::int64_t gpus = 0;
  for (const auto& rank : ranks) {
    hosts.insert(rank.host);
    if (rank.device != "cpu") ++gpus;
  }
  return gpus > 0 ? gpus : static_cast<std::int64_t>(hosts.size());
}

std::vector<std::string> run_ids(const RecordDatabase& records) {
  std::vector<std::string> ids;
  records.query("SELECT run_id FROM runs ORDER BY rowid", {}, [&](const auto&, const auto& row) {
    ids.push_back(std::get<std::string>(row[0]));
  });
  return ids;
}

RunRecord read_run_record(const RecordDatabase& records, const std::string& run_id) {
  auto found = read_one(records, kRuns, kOfRun, {run_id});
  if (!found) throw Error(ErrorKind::kUsage, records.path().string() + ": holds no run " + run_id);
  return *std::move(found);
}

std::vector<AttemptRecord> read_attempts(const RecordDatabase& records, const std::string& run_id) {
  return read_all(records, kAttempts, "WHERE run_id = ? ORDER BY attempt", {run_id});
}

std::vector<InputRecord> read_inputs(const RecordDatabase& records, const std::string& run_id) {
  return read_all(records, kInputs, "WHERE run_id = ? ORDER BY rowid", {run_id});
}

std::vector<std::string> runs_from_checkpoints(const RecordDatabase& records) {
  std::vector<std::string> ids;
  records.query(
      "SELECT run_id FROM attempts AS first WHERE resumed_from <> '' AND NOT EXISTS (SELECT 1 FROM "
      "attempts AS other WHERE other.run_id = first.run_id AND other.attempt < first.attempt) "
      "ORDER BY run_id",
      {}, [&](const auto&, const auto& row) {
        if (const auto* id = std::get_if<std::string>(&row[0])) ids.push_back(*id);
      });
  return ids;
}

std::vector<TagRecord> read_tags(const RecordDatabase& records) {
  return read_all(records, kTags, "ORDER BY run_id, tag", {});
}

std::map<std::int64_t, StepRecord> read_steps(const RecordDatabase& records,
                                              const std::string& run_id, std::int64_t first,
                                              std::int64_t last) {
  std::map<std::int64_t, StepRecord> steps;
  for_each_surviving(records, run_id, read_attempts(records, run_id), "AND step BETWEEN ? AND ?",
                     {first, last}, [&](const StepRecord& row) { steps[row.step] = row; });
  return steps;
}

std::vector<MetricRecord> read_metrics(const RecordDatabase& records, const RunLine& line,
                                       std::int64_t first, std::int64_t last) {
  constexpr auto kLowest = std::numeric_limits<std::int64_t>::min();
  if (line.imported)
    return read_all(records, kMetrics,
                    "WHERE run_id = ? AND step BETWEEN ? AND ? ORDER BY step, name",
                    {line.run_id, first, last});
  std::vector<MetricRecord> found;
  for (const Stretch& stretch : line.stretches) {
    // A metric may be of the step after which the run began.
    const auto from = &stretch == &line.stretches.front() ? kLowest : stretch.first;
    for_each(records, kMetrics,
             "WHERE run_id = ? AND attempt = ? AND step BETWEEN ? AND ? ORDER BY step, name",
             {line.run_id, stretch.attempt, std::max(first, from), std::min(last, stretch.last)},
             [&](const MetricRecord& row) { found.push_back(row); });
  }
  return found;
}

std::vector<ImportedStepRecord> read_imported_steps(const RecordDatabase& records,
                                                    const std::string& run_id, std::int64_t first,
                                                    std::int64_t last) {
  if (records.schema_version() < kImportedSteps.since) return {};
  const std::string step = name_in(records, kImportedStepColumns[0]);
  return read_all(records, kImportedSteps,
                  "WHERE run_id = ? AND " + step + " BETWEEN ? AND ? ORDER BY " + step,
                  {run_id, first, last});
}

std::optional<ImportedStepRecord> last_imported(const RecordDatabase& records,
                                                const std::string& run_id) {
  return read_one(records, kImportedSteps, "WHERE run_id = ? ORDER BY 1 DESC LIMIT 1", {run_id});
}

std::vector<EnergyRecord> read_energy(const RecordDatabase& records, const std::string& run_id) {
  return read_all(records, kEnergy, "WHERE run_id = ? ORDER BY 8, 9, 1, 2",  // attempt, host, …
                  {run_id});
}

std::optional<std::int64_t> last_step(const RecordDatabase& records, const std::string& run_id) {
  const RunLine line = read_line(records, run_id);
  if (line.empty()) return std::nullopt;
  if (!line.imported) return line.last();
  const auto row = last_imported(records, run_id);
  return row ? row->step : std::nullopt;
}

SoundSteps sound_steps(const RecordDatabase& records, const std::string& run_id,
                       std::int64_t last) {
  const auto run = read_one(records, kRuns, kOfRun, {run_id});
  OLMO_CHECK(run);
  const auto attempts = read_attempts(records, run_id);
  SoundSteps sound{
      .first = start_of(attempts), .last = start_of(attempts), .link = {}, .altered = {}};
  StepVerifier verifier(*run, sound.first, start_link_of(attempts));
  sound.link = verifier.link();
  bool ended = false;
  for_each_surviving(records, run_id, attempts, "AND step <= ?", {last},
                     [&](const StepRecord& row) {
                       if (ended) return;
                       std::vector<Finding> findings;
                       verifier.add(row, findings);
                       ended = !findings.empty();
                       if (!ended) {
                         sound.last = row.step;
                         sound.link = verifier.link();
                       } else if (findings.front().quantity != "step") {
                         sound.altered = findings.front();
                       }
                     });
  return sound;
}

bool was_left(const RecordDatabase& records, const std::string& run_id, std::int64_t step,
              const std::string& chain_hash) {
  bool there = false, survives = false;
  const auto same = [&](const StepRecord& row) { return row.chain_hash == chain_hash; };
  for_each(records, kSteps, "WHERE run_id = ? AND step = ?", {run_id, step},
           [&](const StepRecord& row) { there = there || same(row); });
  for (const auto& [number, row] : read_steps(records, run_id, step, step))
    survives = survives || same(row);
  return there && !survives;
}

}  // namespace olmo::store
