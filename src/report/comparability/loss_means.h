// Losses that are means over labels, beside losses that are means over all tokens.
#pragma once

#include <optional>
#include <string>

#include "core/loss_mean.h"
#include "store/runs/recorded_run.h"

namespace olmo::report {

/// Nothing: the log does not tell.
std::optional<LossMean> loss_mean_of(const store::RecordedRun& run);

/// Whether one side tells it and the other does not.
bool one_mean_is_unknown(const store::RecordedRun& a, const store::RecordedRun& b);

/// Makes means over tokens means over labels: losses and gradient norms times T / (T - 1), as every
/// instance of T tokens, which the config tells, has T - 1 labels. Returns whether the losses are
/// means over labels now. Labels that are masked leave other numbers of them: those stay.
bool take_over_labels(store::RecordedRun& run);

/// The losses before that.
const std::vector<double>& as_written(const store::StepColumns& steps);

struct AlignedLosses {
  bool over_labels = false;  ///< those of one side were made so
  std::string caveat;        ///< one sentence or more, or none
};
/// Where one side's are means over labels and the other's over tokens, both become means over
/// labels.
AlignedLosses align_losses(store::RecordedRun& a, store::RecordedRun& b);

}  // namespace olmo::report
