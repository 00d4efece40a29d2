#include "monitor/run_view.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "store/runs/energy_rows.h"
#include "store/runs/recorded_run.h"
#include "store/runs/series.h"

namespace olmo::monitor {
namespace {

namespace fs = std::filesystem;

/// Steps whose pace is that of now.
constexpr std::int64_t kRecentSteps = 100;

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// The folder that the run was written to; nothing: it is none of these.
std::optional<fs::path> folder_of(const std::string& run_id, const std::set<fs::path>& folders) {
  for (const auto& folder : folders) {
    try {
      const auto identity = store::read_identity(folder);
      if (identity && identity->run_id == run_id) return folder;
    } catch (const std::exception&) {  // a damaged run.json names no run
    }
  }
  return std::nullopt;
}

/// The last step, and the pace of the last ones. Of an imported run `step` is its position.
void read_last(const store::RecordDatabase& records, RunView& view) {
  if (view.line.empty()) return;
  const store::Quantities wanted{
      .columns = {"tokens", "ce_loss", "lr", "grad_norm", "tokens_per_second", "mfu", "seconds"}};
  // Positions of an import may lie far apart: then the last row is all that is read.
  const auto before = view.line.imported ? view.line.last() - 1 : view.line.last() - kRecentSteps;
  const auto points = store::points_after(records, view.line, wanted, before, kRecentSteps);
  if (points.step.empty()) return;
  const auto last = [&](std::size_t column) { return finite(points.values[column].back()); };
  const auto tokens = last(0);
  view.last = {.step = points.step.back(),
               .tokens = tokens ? std::optional(std::llround(*tokens)) : std::nullopt,
               .loss = last(1),
               .lr = last(2),
               .grad_norm = last(3),
               .tokens_per_second = last(4),
               .mfu = last(5)};
  double sum = 0;
  std::int64_t count = 0;
  for (const double seconds : points.values[6]) {
    if (!std::isfinite(seconds)) continue;
    sum += seconds;
    ++count;
  }
  if (count > 0) view.seconds_per_step = sum / static_cast<double>(count);
}

std::vector<store::EvaluationPoint> newest_of_each(std::vector<store::EvaluationPoint> points) {
  std::vector<store::EvaluationPoint> newest;
  std::set<std::string> seen;
  for (auto point = points.rbegin(); point != points.rend(); ++point)
    if (seen.insert(point->task).second) newest.push_back(std::move(*point));
  std::ranges::sort(newest, {}, &store::EvaluationPoint::task);
  return newest;
}

}  // namespace

std::set<fs::path> possible_folders(const fs::path& database,
                                    const std::vector<store::CheckpointRecord>& saved) {
  std::set<fs::path> folders;
  const auto add = [&](const fs::path& inside) {
    std::error_code error;  // a path of a record may be anything, also empty
    const fs::path whole = fs::absolute(inside, error);
    if (!error) folders.insert(whole.parent_path());
  };
  add(database);
  for (const auto& checkpoint : saved) add(checkpoint.path);
  return folders;
}

Judgement judge(const std::string& status, const std::optional<store::FolderWriter>& writer) {
  using State = store::FolderWriter::State;
  if (status != "running") return {Activity::kEnded, status, ""};
  if (!writer)
    return {Activity::kUnknown, "running by its record",
            "its run folder is not here, so nothing shows whether its process lives"};
  switch (writer->state) {
    case State::kHolds:
      return {Activity::kRuns, "running", writer->words};
    case State::kGone:
      return {Activity::kGone, "not running", writer->words};
    case State::kNone:
      return {Activity::kGone, "not running",
              "its record was not ended, but no process has its run folder"};
    case State::kUnknown:
      break;
  }
  return {Activity::kUnknown, "running by its record",
          "nothing here shows whether its process lives" +
              (writer->words.empty() ? "" : " (" + writer->words + ")")};
}

Judgement judge(const store::RunRecord& run, bool imported, const std::set<fs::path>& folders) {
  if (imported) return {Activity::kEnded, "imported"};
  if (run.status != "running") return judge(run.status, std::nullopt);
  const auto folder = folder_of(run.run_id, folders);
  return judge(run.status, folder ? std::optional(store::writer_of(*folder)) : std::nullopt);
}

Judgement judge(const store::RecordDatabase& records, const std::string& run_id,
                const std::string& status, bool imported) {
  store::RunRecord run;
  run.run_id = run_id;
  run.status = status;
  if (imported || status != "running") return judge(run, imported, {});
  return judge(run, imported,
               possible_folders(records.path(), store::read_checkpoints(records, run_id)));
}

RunView read_run_view(const store::RecordDatabase& records, const std::string& run_id,
                      std::size_t events) {
  RunView view;
  view.run = store::read_run_record(records, run_id);
  const auto attempts = store::read_attempts(records, run_id);
  view.attempts = std::ssize(attempts);
  view.line = store::read_line(records, view.run, attempts);
  read_last(records, view);
  view.evaluations = newest_of_each(store::evaluation_points(records, run_id));
  view.checkpoints = store::read_checkpoints(records, run_id);
  static_cast<Judgement&>(view) =
      judge(view.run, view.line.imported, possible_folders(records.path(), view.checkpoints));
  std::erase_if(view.checkpoints, [](const auto& each) { return !each.deleted_utc.empty(); });
  view.energy = store::read_energy(records, run_id);
  std::erase_if(view.energy, [](const auto& each) { return !each.joules; });
  view.events = store::last_events(records, run_id, events);
  if (view.state == "diverged" || view.state == "failed") {
    // Audits and declarations may have come since.
    const auto error = std::find_if(view.events.rbegin(), view.events.rend(),
                                    [](const auto& event) { return event.kind == "error"; });
    if (error != view.events.rend()) view.reason = error->message;
  }
  view.ranks = store::last_ranks(records, run_id);
  if (view.may_run() && view.seconds_per_step && view.last && view.run.max_steps > view.last->step)
    view.eta_seconds =
        *view.seconds_per_step * static_cast<double>(view.run.max_steps - view.last->step);
  return view;
}

std::vector<EnergySum> energy_sums(const std::vector<store::EnergyRecord>& energy) {
  std::map<std::string, EnergySum> sums;
  std::int64_t last_attempt = 0;
  for (const auto& row : energy) last_attempt = std::max(last_attempt, row.attempt);
  for (const auto& sensor : store::sum_by_sensor(energy)) {
    if (!sensor.joules) continue;
    EnergySum& sum = sums[sensor.covers];
    sum.covers = sensor.covers;
    sum.joules += *sensor.joules;
  }
  for (const auto& row : energy) {
    if (row.attempt != last_attempt || !store::is_measured(row)) continue;
    EnergySum& sum = sums[row.covers];
    if (row.seconds && *row.seconds > 0)
      sum.watts = sum.watts.value_or(0) + *row.joules / *row.seconds;
  }
  std::vector<EnergySum> list;
  for (auto& [covers, sum] : sums) list.push_back(std::move(sum));
  return list;
}

std::optional<store::RankRecord> slowest_of(const std::vector<store::RankRecord>& ranks) {
  if (ranks.size() < 2) return std::nullopt;
  return *std::ranges::max_element(ranks, {}, &store::RankRecord::slowest_steps);
}

}  // namespace olmo::monitor
