#include "report/run_report.h"

#include "report/evaluations/named_evaluations.h"

namespace olmo::report {

RunReport report_run(const std::string& run, const std::string& cluster, store::OpenMode reading) {
  const store::RunName name = store::parse_run_name(run);
  const Cluster place = cluster.empty() ? Cluster{} : read_cluster(cluster);
  RunReport found;
  found.side = name_side(run, name);
  hash_database(found.side, name);
  const SideRecords records = open_records(name, reading);
  add_run(found.side, records);
  if (found.side.run) {
    found.marks = marks_of(*found.side.run, 'A');
    found.efficiency = efficiency_of(*found.side.run, place);
  }
  if (found.side.run) found.audits = reference_distance(*found.side.run).audits;
  found.evaluations = read_sealed_scores(
      records.database(),
      records.run_id.empty() ? records.evaluations
                             : store::EvaluationDb(records.database()).list(records.run_id),
      *records.seals);
  if (!records.evaluations.empty())
    found.side.evaluation = read_evaluation(records, latest_of(records.evaluations).evaluation_id);
  return found;
}

std::vector<std::string> damage_of(const RunReport& report) {
  auto sentences = damage_of(report.side);
  const auto& latest = report.side.evaluation;
  for (const EvaluationScores& each : report.evaluations) {
    if (latest && latest->evaluation_id == each.evaluation_id) continue;  // the side's own
    const auto more = damage_at_step(each.evaluation_id, each.step, each.damage);
    sentences.insert(sentences.end(), more.begin(), more.end());
  }
  return sentences;
}

}  // namespace olmo::report
