// Ranks take every decision together: if one were to stop, save or fail by itself, the others would
// wait for it in their next collective, for ever.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/process.h"
#include "dist/agreement.h"
#include "dist/communicator.h"
#include "train/phases.h"

namespace olmo::train {

/// The error as an Error, whatever it was.
Error as_error(const std::exception& error);

// A dist::AgreedError is thrown by every rank at the same place: collectives still work, so the
// state can be saved.

/// Runs `work` on every rank. If it throws on some, all throw the AgreedError of the lowest of
/// them, which names the rank unless all have failed alike. A world of one throws what `work` does.
void agree(dist::Communicator& ranks, const std::function<void()>& work);

/// Runs `work` on rank 0; if it throws, all ranks throw.
void decide(dist::Communicator& ranks, const std::function<void()>& work);

/// What a rank tells all others at the end of a step. Travels as bytes.
struct StepReport {
  StepTimes times;
  double peak_flops = 0;           ///< of this rank; 0: unknown
  std::int32_t stop = 0;           ///< StopRequest: a signal came
  std::array<char, 16> signal{};   ///< its name
  std::int32_t time_is_over = 0;   ///< by this rank's clock
  std::int32_t record_is_due = 0;  ///< by this rank's clock
  std::int32_t error = 0;          ///< ErrorKind of what it could not do; 0: nothing
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

/// If any report tells an error, all ranks throw it as an AgreedError. `mine`: this rank's.
void throw_agreed(dist::Communicator& ranks, const std::vector<StepReport>& reports,
                  const std::optional<Error>& mine);

}  // namespace olmo::train
