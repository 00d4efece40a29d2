#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/evaluation_rows.h"
#include "eval/task.h"

namespace olmo::eval {

/// A number made from a scored continuation.
struct ScoreDefinition {
  std::string_view name;
  /// False: the option with the highest score is chosen, and the metric is the accuracy. True: a
  /// cost; the metric is its mean over the right continuations.
  bool is_cost = false;
  /// Absent where the row lacks the unconditional scores, and for `f1`, which is none of one
  /// option.
  std::optional<double> (*of)(const OptionRow&) = nullptr;
};

/// The score of that name (LL: the continuation's log-likelihood in nats; characters are code
/// points and, as the bytes, do not count the leading space):
///   sum              LL                    OLMo `acc`, lm-eval `acc`
///   per_char         LL / characters       OLMo `len_norm`, lm-eval `acc_norm`
///   per_char_spaced  LL / (characters + 1) Catwalk `per_char`
///   per_byte         LL / bytes            lm-eval `acc_bytes`
///   per_token        LL / tokens           Catwalk `per_token`
///   pmi              LL - unconditional LL Catwalk `uncond`, lm-eval `acc_mutual_info`
///   pmi_olmo         LL / unconditional sum of raw logits: OLMo's ICLMetric, as it is
///   ce_loss          -LL / characters      OLMo `ce_loss` (a cost)
///   bpb              -LL · log2(e) / bytes OLMo `bpb` (a cost), its constant
///   f1               of the first option where LL chooses: OLMo `f1`; 0 where scikit-learn has 0
/// Throws Error(kInput) that lists the names if there is none.
const ScoreDefinition& find_score(std::string_view name);

/// Throws Error(kInput) if a score of the task's metrics is unknown, or the primary metric is none
/// of them.
void check_metrics(const Task& task);

/// Fills `rank` and `margin` of an instance's rows by the task's primary metric. The first maximum
/// wins, as in NumPy's and PyTorch's argmax. A cost ranks by its negative. Where some row lacks the
/// score, `sum` ranks instead; a single option has margin 0.
void rank_options(const Task& task, std::span<OptionRow> rows);

/// The task's metrics, in its order, then `chance` (the mean of 1 / options), from its rows in any
/// order. Standard errors are lm-eval's: sample deviation / √n, absent for n = 1. Instances without
/// all of their continuations 0, 1, … or the right one are left out, and counted as `skipped`;
/// `truncated` counts those with a cut context: both only where there are any. A metric that no
/// instance has the scores for is absent, as are all of them without instances.
std::vector<EvaluationMetric> aggregate(const Task& task, std::span<const OptionRow> rows);

/// The unweighted mean of the metrics, as (`task` = name, scope `macro`): its standard error is
/// that of independent tasks, absent if one of theirs is; n is their sum. The metric keeps its name
/// if all share it, else it is `primary`. There must be at least one.
EvaluationMetric macro_average(const std::string& name,
                               std::span<const EvaluationMetric> primaries);

}  // namespace olmo::eval
