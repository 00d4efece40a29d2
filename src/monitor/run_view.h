// What a person wants to know of a run now, whoever shows it: `runs watch` and `serve` say the
// same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/runs/run_db.h"
#include "store/runs/run_facts.h"
#include "store/runs/run_folder.h"
#include "store/runs/run_line.h"

namespace olmo::monitor {

/// Whether something goes on in a run.
enum class Activity {
  kEnded,    ///< the record says how it ended
  kRuns,     ///< a process holds its folder
  kGone,     ///< the record says that it runs, but no process does
  kUnknown,  ///< the record says that it runs, and nothing here shows whether that is so
};

/// What a record and the process that was seen make of a run.
struct Judgement {
  Activity activity = Activity::kEnded;
  /// One or a few words: "running", "not running", "running by its record", "finished", "stopped",
  /// "diverged", "failed", "imported".
  std::string state = {};
  /// A sentence where these words need one: who runs, why nobody does; of a RunView also the error
  /// that ended it.
  std::string reason = {};

  /// Whether more steps may come by themselves.
  [[nodiscard]] bool may_run() const {
    return activity == Activity::kRuns || activity == Activity::kUnknown;
  }
};

/// The numbers of the last step; absent: not recorded.
struct LastStep {
  std::int64_t step = 0;
  std::optional<std::int64_t> tokens = {};
  std::optional<double> loss = {}, lr = {}, grad_norm = {}, tokens_per_second = {}, mfu = {};
};

struct RunView : Judgement {
  store::RunRecord run;
  store::RunLine line;
  std::optional<LastStep> last;
  std::int64_t attempts = 0;
  std::optional<double> seconds_per_step;            ///< mean of the last steps
  std::optional<double> eta_seconds;                 ///< at that pace; only while it may run
  std::vector<store::EvaluationPoint> evaluations;   ///< the newest of each task
  std::vector<store::CheckpointRecord> checkpoints;  ///< those that were not deleted
  std::vector<store::EnergyRecord> energy;           ///< those that were measured
  std::vector<store::EventRecord> events;            ///< the newest, oldest first
  std::vector<store::RankRecord> ranks;              ///< of the last attempt
};

/// Where the folder that a run was written to may be: beside its database, and beside its
/// checkpoints.
std::set<std::filesystem::path> possible_folders(const std::filesystem::path& database,
                                                 const std::vector<store::CheckpointRecord>& saved);

/// `writer`: nothing if the run's folder was not found.
Judgement judge(const std::string& status, const std::optional<store::FolderWriter>& writer);
/// Of a run whose folder is one of these. They are looked into only if its record says that it
/// runs.
Judgement judge(const store::RunRecord& run, bool imported,
                const std::set<std::filesystem::path>& folders);
/// Of a run of this database: its folder is looked for beside that, and beside its checkpoints.
Judgement judge(const store::RecordDatabase& records, const std::string& run_id,
                const std::string& status, bool imported);

/// Few index lookups, whatever the run's length. Throws as read_line.
RunView read_run_view(const store::RecordDatabase& records, const std::string& run_id,
                      std::size_t events = 8);

/// Per kind of coverage (node, package, device, job): joules and mean watts of all attempts.
struct EnergySum {
  std::string covers;
  double joules = 0;
  std::optional<double> watts;  ///< of the last attempt
};
std::vector<EnergySum> energy_sums(const std::vector<store::EnergyRecord>& energy);

/// The rank for which the others waited most often; nothing for a single one.
std::optional<store::RankRecord> slowest_of(const std::vector<store::RankRecord>& ranks);

}  // namespace olmo::monitor
