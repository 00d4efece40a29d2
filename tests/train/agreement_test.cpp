#include "train/agreement.h"

#include <csignal>

#include "core/error.h"
#include "dist/thread_ranks.h"
#include "support/catch.h"

namespace olmo::train {
namespace {

using dist::Communicator;
using dist::run_ranks;

TEST_CASE("the signal of the lowest rank that has one holds for all", "[train]") {
  std::vector<StepReport> reports(3);
  CHECK(signal_of(reports).request == StopRequest::kNone);
  reports[2].stop = static_cast<std::int32_t>(StopRequest::kInterrupt);
  reports[2].signal = {"SIGINT"};
  CHECK(signal_of(reports).request == StopRequest::kInterrupt);
  CHECK(signal_of(reports).name == "SIGINT on rank 2");
  reports[0].stop = static_cast<std::int32_t>(StopRequest::kStop);
  reports[0].signal = {"SIGTERM"};
  CHECK(signal_of(reports).request == StopRequest::kStop);
  CHECK(signal_of(reports).name == "SIGTERM");
}

TEST_CASE("a report tells the signal that came", "[train]") {
  const StopSignals signals;
  CHECK(report_of(signals).stop == static_cast<std::int32_t>(StopRequest::kNone));
  std::raise(SIGUSR1);
  const std::vector<StepReport> reports = {report_of(signals)};
  CHECK(signal_of(reports).name == "SIGUSR1");
}

TEST_CASE("what one rank could not do is told by its report", "[train]") {
  run_ranks(3, [](Communicator& ranks) {
    StepReport report;
    OLMO_CHECK(!any_failed(exchange_reports(ranks, report)));
    report.failed = ranks.rank() == 1 ? 1 : 0;
    OLMO_CHECK(any_failed(exchange_reports(ranks, report)));
  });
}

}  // namespace
}  // namespace olmo::train
