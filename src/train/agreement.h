// Ranks take every decision together: if one were to stop, save or fail by itself, the others would
// wait for it in their next collective, for ever.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/process/process.h"
#include "dist/communicator.h"
#include "train/phases.h"

namespace olmo::train {

/// What a rank tells all others at the end of a step. Travels as bytes.
struct StepReport {
  StepTimes times;
  double peak_flops = 0;            ///< of this rank; 0: unknown
  std::int32_t stop = 0;            ///< StopRequest: a signal came
  std::array<char, 16> signal{};    ///< its name
  std::int32_t time_is_over = 0;    ///< by this rank's clock
  std::int32_t record_is_due = 0;   ///< by this rank's clock
  std::int32_t save_has_ended = 0;  ///< the one in the background, if there is one
  std::int32_t failed = 0;          ///< there is something that it could not do
};

StepReport report_of(const StopSignals& signals);

/// The reports of all ranks, by rank.
std::vector<StepReport> exchange_reports(dist::Communicator& ranks, const StepReport& mine);

/// The signal on which all act: that of the lowest rank which has one.
struct AgreedSignal {
  StopRequest request = StopRequest::kNone;
  std::string name;  ///< "SIGTERM"; "SIGTERM on rank 2" if rank 0 has none
};
AgreedSignal signal_of(const std::vector<StepReport>& reports);

/// Whether any rank could not do something.
bool any_failed(const std::vector<StepReport>& reports);

}  // namespace olmo::train
