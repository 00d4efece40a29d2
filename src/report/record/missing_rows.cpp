#include "report/record/missing_rows.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <set>

#include <nlohmann/json.hpp>

#include "config/run_columns.h"
#include "core/files/recorded_json.h"
#include "core/hash.h"
#include "core/text/text.h"
#include "store/runs/audit_records.h"
#include "store/runs/op_traces.h"
#include "store/runs/run_facts.h"
#include "store/runs/run_line.h"

namespace olmo::report {
namespace {

/// The sentences of one run.
class MissingRows {
 public:
  MissingRows(const store::RecordDatabase& records, const store::RecordedRun& run,
              const config::TrainConfig& config)
      : records_(records), run_(run), config_(config) {}

  std::vector<std::string> find() {
    find_inputs();
    find_numbered();
    find_events();
    find_checkpoints();
    find_end();
    if (run_.steps.size() == 0 || run_.attempts.empty()) return std::move(found_);
    find_ranks();
    const auto stretch = store::stretches_of(run_.attempts).front();
    if (stretch.first < 1 || stretch.first > run_.steps.step.back()) return std::move(found_);
    find_traces(stretch);
    find_states(stretch);
    find_evaluations(stretch);
    return std::move(found_);
  }

 private:
  /// The same file may be named twice, and is recorded once: by its absolute path, so that names of
  /// both kinds may be one file's.
  void find_inputs() {
    const std::vector<std::string> files = config_.data.files();
    const std::set<std::string> names(files.begin(), files.end());
    const auto absolute = std::ranges::count_if(
        names, [](const auto& name) { return std::filesystem::path(name).is_absolute(); });
    const bool alike = absolute == 0 || absolute == std::ssize(names);
    const std::int64_t expected = alike ? std::ssize(names) : 1;
    const auto recorded = std::ranges::count(run_.inputs, "tokens", &store::InputRecord::kind);
    if (recorded < expected)
      found_.push_back("its config names " + counted(std::ssize(names), "token file") +
                       ", and the record has " + std::to_string(recorded) +
                       ": rows of inputs were removed");
  }

  /// Attempts and audits count from 1, and rows of others name an attempt.
  void find_numbered() {
    const auto missing = [&](const std::string& one, const std::string& table) {
      found_.push_back(one + " is not in the record: rows of " + table + " were removed");
    };
    std::int64_t attempts = 0, audits = 0;
    for (const auto& attempt : run_.attempts)
      if (attempt.attempt != ++attempts)
        return missing("attempt " + std::to_string(attempts), "attempts");
    for (const auto& event : run_.events)
      if (event.attempt > attempts)
        return missing("attempt " + std::to_string(event.attempt) + ", which has events,",
                       "attempts");
    for (const auto& audit : run_.audits)
      if (audit.audit != ++audits) return missing("audit " + std::to_string(audits), "audits");
    if (auto altered = store::altered_audit(records_, run_.run_id, run_.audits); !altered.empty())
      found_.push_back(std::move(altered));
  }

  [[nodiscard]] bool has_event(std::int64_t attempt,
                               std::initializer_list<const char*> kinds) const {
    return std::ranges::any_of(run_.events, [&](const store::EventRecord& event) {
      return event.attempt == attempt && std::ranges::find(kinds, event.kind) != kinds.end();
    });
  }

  /// The first row of an attempt's is followed by the event of its start, and that of its end comes
  /// before its outcome.
  void find_events() {
    for (const auto& attempt : run_.attempts) {
      const std::string name = "attempt " + std::to_string(attempt.attempt);
      const bool ranks = std::ranges::find(run_.ranks, attempt.attempt,
                                           &store::RankRecord::attempt) != run_.ranks.end();
      if (ranks && !has_event(attempt.attempt, {"start", "resume"}))
        found_.push_back(name + " has no event of its start: rows of events were removed");
      compare_start(attempt);
      const char* end = attempt.outcome == "finished"  ? "finish"
                        : attempt.outcome == "stopped" ? "stop"
                                                       : "error";
      if (!attempt.outcome.empty() && !has_event(attempt.attempt, {end}))
        found_.push_back(name + " is recorded as " + attempt.outcome +
                         " and has no event of that (" + end +
                         "): rows of events were removed, or the outcome was altered");
    }
  }

  /// The event of a start tells from where: from another run's checkpoint, it is a branch.
  void compare_start(const store::AttemptRecord& attempt) {
    const std::string& from = attempt.resumed_from;
    for (const auto& event : run_.events) {
      const bool begins = event.kind == "start" || event.kind == "resume";
      if (begins && event.attempt == attempt.attempt && !store::tells_start(event, from))
        found_.push_back("attempt " + std::to_string(attempt.attempt) + " went on from " +
                         (from.empty() ? "no checkpoint" : from) + ", and its event says \"" +
                         event.message + "\": one of them was altered");
    }
  }

  /// A row is followed by its event, unless a kill comes between the two.
  void find_checkpoints() {
    using Place = std::pair<std::int64_t, std::int64_t>;  // attempt, step
    std::set<Place> rows, events;
    for (const auto& row : store::read_checkpoints(records_, run_.run_id))
      rows.emplace(row.attempt, row.step);
    for (const auto& event : run_.events)
      if (event.kind == "checkpoint") events.emplace(event.attempt, event.step);
    for (const auto& [attempt, step] : events)
      if (!rows.contains({attempt, step}))
        return say(step,
                   "an event tells of its checkpoint, and that is not in the record: rows of "
                   "checkpoints were removed");
    for (const auto& attempt : run_.attempts)
      for (const auto& [number, step] : rows)
        if (number == attempt.attempt && !attempt.outcome.empty() &&
            !events.contains({number, step}))
          return say(step,
                     "its checkpoint is recorded without its event: rows of events were removed");
  }

  /// What is told of a step of the line comes after the step. An error may be of the step that
  /// could not be made.
  void find_end() {
    const bool none = run_.steps.size() == 0;
    const std::int64_t last = none ? store::start_of(run_.attempts) : run_.steps.step.back();
    if (!none && run_.steps.step.front() <= store::start_of(run_.attempts))
      return;  // the steps of a checkpoint were counted anew
    const std::string ends =
        none ? "the record has no step" : "the record ends at step " + std::to_string(last);
    for (const store::Stretch& stretch : store::stretches_of(run_.attempts)) {
      if (stretch.first - 1 <= stretch.last && stretch.first - 1 > last)
        return say(stretch.first - 1, "attempt " + std::to_string(stretch.attempt) +
                                          " went on from it, and " + ends +
                                          ": rows of steps were removed");
      for (const auto& event : run_.events) {
        const auto step = event.step - (event.kind == "error" ? 1 : 0);
        if (event.attempt == stretch.attempt && step <= stretch.last && step > last)
          return say(step, "an event tells of it (" + event.kind + "), and " + ends +
                               ": rows of steps were removed");
      }
    }
  }

  /// They are recorded before the first step of an attempt.
  void find_ranks() {
    const auto& steps = run_.steps.step;
    for (const store::Stretch& stretch : store::stretches_of(run_.attempts)) {
      const auto& attempt =
          *std::ranges::find(run_.attempts, stretch.attempt, &store::AttemptRecord::attempt);
      const bool trained = stretch.first <= stretch.last && stretch.first <= steps.back();
      const bool has_ranks = std::ranges::find(run_.ranks, stretch.attempt,
                                               &store::RankRecord::attempt) != run_.ranks.end();
      if (attempt.world_size && trained && !has_ranks)
        found_.push_back("attempt " + std::to_string(stretch.attempt) + " was trained by " +
                         counted(*attempt.world_size, "rank") +
                         ", and the record has none: rows of ranks were removed");
    }
  }

  /// What was recorded of a step went to the disk before the next step. Of its last step an attempt
  /// that was killed or failed may lack some: another rank was lost while the state was hashed.
  [[nodiscard]] std::int64_t last_whole(const store::Stretch& stretch) const {
    const std::int64_t last = std::min(stretch.last, run_.steps.step.back());
    const std::string& outcome = run_.attempts.front().outcome;
    return outcome == "finished" || outcome == "stopped" ? last : last - 1;
  }

  void find_traces(const store::Stretch& stretch) {
    const std::int64_t interval = config_.trace_interval;
    if (interval <= 0) return;
    const auto traced = store::steps_traced_by(records_, run_.run_id, stretch.attempt);
    find(stretch, interval, {traced.begin(), traced.end()}, true,
         "no operation of it is recorded, and its config has all of them traced: rows of op_traces "
         "were removed");
  }

  void find_states(const store::Stretch& stretch) {
    std::set<std::int64_t> hashed;
    for (const auto& [step, hashes] : run_.state_hashes) hashed.insert(step);
    const std::string missing =
        "no hash of its state is recorded, and every training records it: rows of state_hashes "
        "were removed";
    if (stretch.first == 1 && last_whole(stretch) > 0 && !hashed.contains(0)) say(0, missing);
    find(stretch, config_.hash_interval, hashed, false, missing);
    const std::int64_t end = run_.steps.step.back();
    if (run_.status == "finished" && end == run_.max_steps && !hashed.contains(end))
      say(end, missing);
  }

  /// An evaluation within the training is recorded before its scores, and before the next step is
  /// made. Where none is, the evaluators may have been left out, as their data were not there.
  void find_evaluations(const store::Stretch& stretch) {
    const std::string missing = ": rows of evaluations were removed";
    if (const auto step = store::score_without_evaluation(records_, run_.run_id))
      return say(*step, "scores of it are recorded, and no evaluation of it is" + missing);
    const auto evaluated = store::evaluated_steps(records_, run_.run_id, stretch.attempt);
    if (evaluated.empty() || recorded_json(config_.evaluators.text).empty()) return;
    const std::int64_t last = std::min(stretch.last, run_.steps.step.back());
    find({.attempt = stretch.attempt, .first = stretch.first, .last = last - 1},
         config_.eval_interval, evaluated, false,
         "no evaluation of it is recorded, and its config has it evaluated" + missing);
  }

  /// Says the first step of those at the interval, and of the stretch, that is not among
  /// `recorded`.
  void find(const store::Stretch& stretch, std::int64_t interval,
            const std::set<std::int64_t>& recorded, bool with_first, const std::string& missing) {
    const std::int64_t last = last_whole(stretch);
    if (with_first && stretch.first <= last && !recorded.contains(stretch.first))
      return say(stretch.first, missing);
    if (interval <= 0) return;
    for (auto step = (stretch.first + interval - 1) / interval * interval; step <= last;
         step += interval)
      if (!recorded.contains(step)) return say(step, missing);
  }

  void say(std::int64_t step, const std::string& missing) {
    found_.push_back("step " + std::to_string(step) + ": " + missing);
  }

  const store::RecordDatabase& records_;
  const store::RecordedRun& run_;
  const config::TrainConfig& config_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> missing_rows(const store::RecordDatabase& records,
                                      const store::RecordedRun& run) {
  if (run.imported || run.chain_format != kChainFormat) return {};
  const auto config = config::run_columns(run.config);
  return config ? MissingRows(records, run, config->config).find() : std::vector<std::string>{};
}

}  // namespace olmo::report
