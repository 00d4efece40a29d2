#include "train/agreement.h"

#include <algorithm>
#include <cstring>

#include "dist/agreement.h"
#include "dist/exchange.h"

namespace olmo::train {

void decide(dist::Communicator& ranks, const std::function<void()>& work) {
  if (ranks.size() == 1) return work();
  ErrorKind kind = ErrorKind::kFailure;
  std::string message;
  bool failed = false;
  try {
    if (ranks.rank() == 0) work();
  } catch (const std::exception& error) {
    failed = true;
    if (const auto* ours = dynamic_cast<const Error*>(&error)) kind = ours->kind();
    message = error.what();
  }
  const std::string told =
      dist::broadcast_text(ranks, failed ? std::to_string(static_cast<int>(kind)) : "", 0);
  if (told.empty()) return;
  throw dist::AgreedError(static_cast<ErrorKind>(std::stoi(told)),
                          dist::broadcast_text(ranks, message, 0));
}

StepReport report_of(const StopSignals& signals) {
  StepReport report;
  report.stop = static_cast<std::int32_t>(signals.requested());
  if (signals.requested() != StopRequest::kNone) {
    const std::string name = signals.name();
    std::memcpy(report.signal.data(), name.data(), std::min(name.size(), report.signal.size() - 1));
  }
  return report;
}

std::vector<StepReport> exchange_reports(dist::Communicator& ranks, const StepReport& mine) {
  return dist::all_gather_value(ranks, mine);
}

AgreedSignal signal_of(const std::vector<StepReport>& reports) {
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const auto request = static_cast<StopRequest>(reports[rank].stop);
    if (request == StopRequest::kNone) continue;
    const std::string name = reports[rank].signal.data();
    return {request, rank == 0 ? name : name + " on rank " + std::to_string(rank)};
  }
  return {};
}

bool tell_failure(const std::vector<StepReport>& reports) {
  return std::ranges::any_of(reports, [](const StepReport& report) { return report.failed != 0; });
}

}  // namespace olmo::train
