#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/claims/claim.h"
#include "report/claims/verdict.h"
#include "report/comparability/loss_spans.h"
#include "report/cost/efficiency.h"
#include "report/evaluations/evaluation_scores.h"
#include "report/evaluations/perplexity_comparison.h"
#include "report/evaluations/task_comparison.h"
#include "report/gate.h"
#include "report/training/identity.h"
#include "report/training/trajectory.h"

namespace olmo::report {

/// All that a parity report says; the page, the JSON, the CSV and the Markdown show this and
/// compute nothing.
struct ParityReport {
  Verdict verdict = Verdict::kInvalidData;
  std::string claim;          ///< the verdict's: identity, models or setups; empty: none
  std::string reason;         ///< one sentence
  std::vector<Claim> claims;  ///< models, then setups; those that apply
  AlphaSpent alpha;           ///< of each claim
  Margins margins;
  std::vector<std::string> caveats;  ///< why the verdict is not better, what to run, power
  Kind kind = Kind::kTrajectory;
  std::string kind_reason;  ///< one sentence: how it is known
  Side a, b;
  Gate gate;
  std::vector<std::string> damage;  ///< INVALID_DATA: one sentence each
  Identity identity;
  /// Where the trainings are the same, the first scores of any step that are not; empty: none.
  std::string unlike_scores;
  NoiseFloor noise;
  std::optional<Trajectory> trajectory;
  bool over_labels = false;  ///< losses were made means over labels (loss_means.h)
  Spans mean_spans;          ///< losses were made means over these (loss_spans.h); none: no need
  std::optional<TasksComparison> tasks;
  std::optional<Test> checkpoints;  ///< of several steps that were evaluated on both sides
  std::optional<PerplexityComparison> perplexity;
  /// Of every finished evaluation of the runs, by step; differences are tested at one step alone.
  std::vector<EvaluationScores> scores_a, scores_b;
  std::optional<Efficiency> efficiency_a, efficiency_b;
  std::string command;  ///< that makes this report again
  std::string version;  ///< of the harness
};

/// What the command line may say.
struct ParityOptions {
  std::optional<Kind> kind;
  bool skip_evaluations = false;
  GivenMargins margins;                       ///< for what A has not declared
  std::map<std::string, std::string> assume;  ///< KEY, VALUE of what the records do not tell
  /// Of a log that tells steps and no tokens, where the other side tells tokens.
  std::optional<std::int64_t> tokens_per_step;
  std::string noise;                 ///< file of published deviations; empty: none
  std::string cluster_a, cluster_b;  ///< files; empty: none
  std::string command, version;
  store::OpenMode reading = store::OpenMode::kReadOnly;
};

/// Compares two runs, each named as `FILE.db`, `FILE.db:ID` (of a run or an evaluation) or a run
/// directory. A database that is damaged makes a report of the verdict INVALID_DATA. Throws
/// Error(kUsage) for names that name nothing, and where `kind` is needed and missing.
ParityReport compare(const std::string& a, const std::string& b, const ParityOptions& options);

}  // namespace olmo::report
