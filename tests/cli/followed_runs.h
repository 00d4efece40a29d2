// Runs that were looked at whole, as `runs watch` follows them.
#pragma once

#include <string>
#include <vector>

#include "monitor/followed_run.h"
#include "store/run_fixture.h"

namespace olmo::test {

inline std::vector<monitor::FollowedRun> followed(const std::vector<RecordedCurve*>& runs) {
  std::vector<monitor::FollowedRun> list;
  for (auto* run : runs) {
    list.emplace_back(run->path().string());
    list.back().look(1'000'000);
  }
  return list;
}

/// An evaluation at step 50 on so many tasks, with an accuracy of 0.5 each.
inline void evaluate(RecordedCurve& run, int tasks) {
  run.sql(
      "INSERT INTO evaluations SELECT 'e', run_id, NULL, 50, '', '', 'finished', '', '', '', '', "
      "'', '{}', '{}', '{}', '{}' FROM runs; "
      "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < " +
      std::to_string(9 + tasks) +
      ") INSERT INTO evaluation_tasks SELECT 'e', 'task_' || i, 'rank_classification', 'olmo', '', "
      "'', 'acc', 'finished', '' FROM n; "
      "INSERT INTO evaluation_metrics SELECT 'e', task, '', 'acc', 0.5, NULL, NULL, NULL, 9 FROM "
      "evaluation_tasks");
}

}  // namespace olmo::test
