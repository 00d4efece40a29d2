// Which columns of a log, beside those of its steps, are kept as metrics of the run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace olmo::import {

/// True for the results of evaluations, by the names of OLMo (`eval/downstream/arc_easy_acc`,
/// `eval/perplexity/c4/CrossEntropyLoss`), OLMo-core, torchtitan (`validation_metrics/loss`),
/// Hugging Face (`eval_loss`), Lightning (`val/loss`) and Megatron (`lm loss validation`), for
/// tasks' metrics by themselves (`arc_easy_len_norm`), and for what is told of one device. Not for
/// the smallest and largest values that W&B exports beside a metric (`…__MIN`).
bool is_metric_name(std::string_view column);

/// True if one of the patterns (`*` and `?` as in the shell) is the name, or the name without W&B's
/// `RUN - `.
bool matches_any(std::string_view column, const std::vector<std::string>& patterns);

}  // namespace olmo::import
