#include "train/agreement.h"

#include <algorithm>
#include <cstring>

#include "dist/exchange.h"

namespace olmo::train {
namespace {

/// Throws the error of the lowest rank that has one; `kinds` are those of all ranks, 0 for none.
void throw_lowest(dist::Communicator& ranks, const std::vector<std::int32_t>& kinds,
                  const std::string& mine) {
  const auto first = std::ranges::find_if(kinds, [](std::int32_t kind) { return kind != 0; });
  if (first == kinds.end()) return;
  const auto messages = dist::all_gather_text(ranks, mine);
  const auto rank = static_cast<std::size_t>(first - kinds.begin());
  const bool alike =
      std::ranges::all_of(messages, [&](const auto& each) { return each == messages[rank]; });
  throw dist::AgreedError(static_cast<ErrorKind>(*first),
                          (alike ? "" : "rank " + std::to_string(rank) + ": ") + messages[rank]);
}

}  // namespace

Error as_error(const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  return {ours != nullptr ? ours->kind() : ErrorKind::kFailure, error.what()};
}

void agree(dist::Communicator& ranks, const std::function<void()>& work) {
  if (ranks.size() == 1) return work();
  std::optional<Error> error;
  try {
    work();
  } catch (const std::exception& caught) {
    error = as_error(caught);
  }
  const std::int32_t kind = error ? static_cast<std::int32_t>(error->kind()) : 0;
  throw_lowest(ranks, dist::all_gather_value(ranks, kind), error ? error->what() : "");
}

void decide(dist::Communicator& ranks, const std::function<void()>& work) {
  if (ranks.size() == 1) return work();
  std::string message;
  std::int32_t kind = 0;
  try {
    if (ranks.rank() == 0) work();
  } catch (const std::exception& caught) {
    kind = static_cast<std::int32_t>(as_error(caught).kind());
    message = caught.what();
  }
  const auto kinds = dist::all_gather_value(ranks, kind);
  if (kinds.front() == 0) return;
  throw dist::AgreedError(static_cast<ErrorKind>(kinds.front()),
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

void throw_agreed(dist::Communicator& ranks, const std::vector<StepReport>& reports,
                  const std::optional<Error>& mine) {
  if (ranks.size() == 1) {
    if (mine) throw Error(*mine);
    return;
  }
  std::vector<std::int32_t> kinds;
  for (const auto& report : reports) kinds.push_back(report.error);
  throw_lowest(ranks, kinds, mine ? mine->what() : "");
}

}  // namespace olmo::train
