#include "store/runs/run_summary.h"

#include <nlohmann/json.hpp>

#include "core/files/recorded_json.h"
#include "store/runs/recorded_run.h"
#include "store/runs/run_tables.h"

namespace olmo::store {
namespace {

std::string host_of(const std::string& environment) {
  const auto json = recorded_json(environment);
  if (!json.is_object() || !json.contains("host") || !json["host"].is_string()) return {};
  return json["host"].get<std::string>();
}

}  // namespace

std::vector<RunSummary> run_summaries(const RecordDatabase& records) {
  std::vector<RunSummary> summaries;
  for (auto& run : read_all(records, kRuns, "ORDER BY rowid", {})) {
    RunSummary summary;
    auto attempts = read_attempts(records, run.run_id);
    static_cast<RunOverview&>(summary) = read_overview(records, run, attempts);
    if (!attempts.empty()) {
      summary.last_attempt = std::move(attempts.back());
      summary.host = host_of(summary.last_attempt.environment);
    }
    summary.imported = run.experiment_digest.empty();
    summary.run = std::move(run);
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace olmo::store
