#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/interval.h"
#include "report/recorded_evaluation.h"

namespace olmo::report {

/// Margin of bits per byte.
inline constexpr double kBpbMargin = 0.002;

struct SourceComparison {
  std::string suite, source;  ///< source empty: the macro average over the suite's sources
  std::int64_t documents = 0, tokens = 0, bytes = 0;
  double bpb_a = 0, bpb_b = 0, difference = 0;  ///< B minus A
  std::optional<Interval> interval95;           ///< paired bootstrap by document; absent: too few
  std::optional<Equivalence> equivalence;
  double p = 1;  ///< two-sided, bootstrap
  double holm_p = 1;
  std::int64_t equal_bits = 0;  ///< documents whose nll has the same bits
};

struct PerplexityComparison {
  std::vector<SourceComparison> sources;
  std::vector<std::string> invalid;     ///< missing or unequal counts: INVALID_DATA
  std::vector<std::string> mismatched;  ///< other texts or tokenizer: NOT_COMPARABLE
};

PerplexityComparison compare_perplexity(const EvaluationData& a, const EvaluationData& b);

}  // namespace olmo::report
