#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/claims/claim.h"
#include "report/claims/verdict.h"
#include "report/evaluations/score_agreement.h"
#include "report/stats/interval.h"
#include "report/stats/paired_outcomes.h"

namespace olmo::report {

/// An instance for which the two sides chose differently.
struct Flip {
  std::string task;
  std::int64_t doc_id = 0, label = 0, chosen_a = 0, chosen_b = 0;
  double margin_a = 0, margin_b = 0;           ///< of the primary metric's score
  std::vector<double> logprobs_a, logprobs_b;  ///< nats, by option
  bool explained = false;                      ///< margin_a + margin_b <= 2 × the task's noise
  std::string context{};                       ///< what was asked; empty: not made again
  std::vector<std::string> continuations{};    ///< of the options
};

struct TaskComparison {
  std::string task, metric;
  std::int64_t n = 0;
  PairedCounts counts;
  double accuracy_a = 0, accuracy_b = 0, difference = 0;  ///< fractions, B minus A
  Interval interval95;
  double p = 1;               ///< McNemar, mid-p
  double holm_p = 1;          ///< over all tasks
  Equivalence equivalence;    ///< with its margin and 90 % interval
  double detectable = 0;      ///< smallest difference found with power 0.8
  std::int64_t needed_n = 0;  ///< instances to certify the margin at the discordance seen
  ScoreAgreement agreement;
  double noise = 0;  ///< of this task's margins (flip_noise), in their unit
  std::int64_t flips = 0, explained_flips = 0;
};

struct MacroComparison {
  double accuracy_a = 0, accuracy_b = 0, difference = 0;
  /// By the stratified paired bootstrap; macro_interval where that has none or, as without any
  /// discordant pair, no width.
  Interval interval95;
  Equivalence equivalence;  ///< macro_equivalence
  std::optional<double> p;  ///< of "no difference"; absent: too few discordant pairs
};

/// Tasks by name. Those whose metric is a cost (EvaluatedTask::is_cost) are left to
/// compare_perplexity.
struct TasksComparison {
  std::vector<TaskComparison> tasks;
  std::vector<Test> score_tests;         ///< of the same weights
  std::optional<MacroComparison> macro;  ///< absent with fewer than two tasks
  double noise = 0;                      ///< the largest of the tasks' noises
  std::string noise_source;              ///< one sentence
  std::vector<Flip> flips;               ///< unexplained ones first, at most kListedFlips
  std::int64_t all_flips = 0, all_explained = 0;
  /// Intersection-union p of all equivalences, the macro average's included; 1 where a task or an
  /// instance is invalid or mismatched.
  double all_pass_p = 1;
  std::vector<std::string> invalid;     ///< missing or unequal: INVALID_DATA
  std::vector<std::string> mismatched;  ///< other prompts or data: NOT_COMPARABLE
};
inline constexpr std::size_t kListedFlips = 200;

/// Instances are matched by doc_id. A task or an instance that one side lacks is invalid; another
/// definition, data set, convention, metric, label, number of options or request is a mismatch,
/// unless one side does not know it. Instances with other labels or options are not counted.
/// `kind` decides what can explain a flip: with the same weights numeric noise, else nothing.
TasksComparison compare_tasks(const EvaluationData& a, const EvaluationData& b, Kind kind,
                              const Margins& margins);

}  // namespace olmo::report
