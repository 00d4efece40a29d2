// What people and programs see of an evaluation.
#pragma once

#include <iosfwd>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/files/output_file.h"
#include "evaluation/evaluation.h"

namespace olmo::cli {

/// `tasks` and `perplexity` of design `eval --json`: per task n, primary_metric, every metric and
/// its standard error (`acc_stderr`), chance; per suite documents, tokens, bytes, nll, ppl, bpb,
/// and the same by scope. A task that failed has `error` instead.
nlohmann::ordered_json scores_json(const evaluation::EvaluationOutcome& outcome,
                                   std::span<const eval::Task> tasks);

/// Two tables: tasks with their primary metric ± standard error, the others and the chance level;
/// suites by source.
void print_scores(std::ostream& out, const evaluation::EvaluationOutcome& outcome,
                  std::span<const eval::Task> tasks);

/// One JSON object per continuation, task by task, of a recorded evaluation. `file` is published.
void write_instances(OutputFile& file, const store::EvaluationDb& record,
                     const std::string& evaluation_id, std::span<const eval::Task> tasks);

}  // namespace olmo::cli
