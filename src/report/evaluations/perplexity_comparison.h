#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/record/recorded_evaluation.h"
#include "report/stats/interval.h"

namespace olmo::report {

/// A source of a suite: Σ nll / Σ length. Or the right answers of a task whose metric is a cost
/// (EvaluatedTask::is_cost): the mean over its instances of nll / length; suite is the task then
/// and source kAnswers.
struct SourceComparison {
  std::string suite, source;  ///< source empty: the macro average over the suite's sources
  /// kBitsPerByte; kBitsPerToken where a suite or task knows no bytes.
  std::string unit;
  std::int64_t documents = 0, tokens = 0, bytes = 0;
  double bpb_a = 0, bpb_b = 0, difference = 0;  ///< in `unit`; B minus A
  std::optional<Interval> interval95;           ///< paired bootstrap by document; absent: too few
  std::optional<Equivalence> equivalence;       ///< absent: too few
  double p = 1;                                 ///< two-sided, bootstrap; 1 within kRoundingOfMeans
  double holm_p = 1;            ///< over the sources of all suites; of a macro average: p
  std::int64_t equal_bits = 0;  ///< documents whose nll has the same bits
};

inline constexpr char kBitsPerByte[] = "bits per byte";
inline constexpr char kBitsPerToken[] = "bits per token";
inline constexpr char kAnswers[] = "right answers";
/// The name of documents whose source has none.
inline constexpr char kUnnamedSource[] = "(unnamed)";

/// Suites by name, then tasks by name; sources by name, the macro average (of two or more) last.
struct PerplexityComparison {
  std::vector<SourceComparison> sources;
  std::vector<std::string> invalid;     ///< missing or unequal counts: INVALID_DATA
  std::vector<std::string> mismatched;  ///< other texts or tokenizer: NOT_COMPARABLE
};

/// Documents are matched by index. One that a side lacks, and other counts of tokens or bytes, are
/// invalid; another definition, convention, data set, source, text or tokenizer is a mismatch,
/// unless one side does not know it. Such documents are not counted, and counts are not held
/// against documents whose texts or tokenizers differ. `margin` is of bits per byte, and of bits
/// per token as well.
PerplexityComparison compare_perplexity(const EvaluationData& a, const EvaluationData& b,
                                        double margin);

}  // namespace olmo::report
