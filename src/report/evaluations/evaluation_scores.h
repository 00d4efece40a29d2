// The scores of a run's evaluations, as they were recorded, with their uncertainty.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/stats/interval.h"
#include "store/evaluations/evaluation_db.h"
#include "store/evaluations/evaluation_seal.h"

namespace olmo::report {

/// The primary metric of a task, or the perplexity or the bits per byte of a suite's scope.
struct Score {
  std::string task, convention, scope, metric;
  std::int64_t n = 0;                  ///< instances or documents
  double value = 0;                    ///< not finite: it was not
  bool is_share = false;               ///< an accuracy, from 0 to 1
  std::optional<Interval> interval95;  ///< absent: too few, or not recorded
};

struct EvaluationScores {
  std::string evaluation_id, created_utc, checkpoint;
  std::string status;  ///< running, finished, failed, interrupted
  std::optional<std::int64_t> step;
  std::vector<Score> scores;          ///< tasks in the order in which they were begun
  std::vector<std::string> problems;  ///< tasks without scores and why, one sentence each
  /// That it was altered after it had ended, one sentence each: then it has no scores to be shown.
  std::vector<std::string> damage = {};
};

/// The scores of each evaluation, by step; those without one last. Seals are not looked at.
std::vector<EvaluationScores> read_scores(store::RecordDatabase& records,
                                          std::span<const store::EvaluationEntry> evaluations);
/// The same, without the scores of those whose seals do not fit. Reads all rows of each.
std::vector<EvaluationScores> read_sealed_scores(
    store::RecordDatabase& records, std::span<const store::EvaluationEntry> evaluations,
    store::SealChecks& seals);
/// Takes away the scores of an evaluation that was altered.
void set_damage(EvaluationScores& evaluation, const std::vector<std::string>& altered);

/// Wilson's interval of level 95 % ("Probable inference, the law of succession, and statistical
/// inference", 1927) for `share` of `n` >= 1 instances: unlike the normal one it stays within 0 and
/// 1, and has a width where all were right or all wrong.
Interval wilson_interval(double share, std::int64_t n);

}  // namespace olmo::report
