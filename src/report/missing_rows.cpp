#include "report/missing_rows.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "config/run_columns.h"
#include "core/hash.h"
#include "core/text.h"
#include "store/audit_records.h"
#include "store/run_line.h"

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
    if (run_.steps.size() == 0 || run_.attempts.empty()) return std::move(found_);
    find_ranks();
    const auto stretch = store::stretches_of(run_.attempts).front();
    if (stretch.first < 1 || stretch.first > run_.steps.step.back()) return std::move(found_);
    find_traces(stretch);
    find_states(stretch);
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
