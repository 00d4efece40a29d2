#include "train/agreement.h"

#include <algorithm>
#include <cstring>

#include "dist/exchange.h"

namespace olmo::train {

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

bool any_failed(const std::vector<StepReport>& reports) {
  return std::ranges::any_of(reports, [](const StepReport& report) { return report.failed != 0; });
}

}  // namespace olmo::train
