// Losses that are means since the row before, beside losses of single steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/loss_mean.h"
#include "store/runs/recorded_run.h"

namespace olmo::report {

/// Nothing: the log does not tell.
std::optional<LossSpan> loss_span_of(const store::RecordedRun& run);

/// Steps `begin` + 1 to the first of `steps`, the next to the second, and so on.
struct Spans {
  std::int64_t begin = 0;
  std::vector<std::int64_t> steps;
};

struct AlignedSpans {
  Spans spans;         ///< over which both have means now; none: no need
  std::string caveat;  ///< one sentence or more, or none
};
/// Where one log has means of other steps than the other side, both get at their common steps the
/// mean of the steps since the common one before, as far as their rows make it up.
AlignedSpans align_spans(store::RecordedRun& a, store::RecordedRun& b);

/// Gives a run the means over `spans`, where its rows make them up.
void take_means(store::RecordedRun& run, const Spans& spans);

}  // namespace olmo::report
