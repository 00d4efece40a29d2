#include "report/copies.h"

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/text/text.h"
#include "report/comparability/comparability.h"

namespace olmo::report {
namespace {

/// Fewer losses may be the same numbers by chance, where a log has few decimals.
constexpr std::size_t kFewestLosses = 20;

/// What a run was imported from.
std::vector<std::string> logs_of(const store::RecordedRun& run) {
  std::vector<std::string> digests;
  for (const auto& input : run.inputs)
    if (input.kind == "log") digests.push_back(input.sha256);
  return digests;
}

/// What an evaluation was imported from.
std::vector<std::string> files_of(const EvaluationData& evaluation) {
  std::vector<std::string> digests;
  const Json settings = recorded_json(evaluation.settings);
  if (!settings.is_object() || !settings.contains("files")) return digests;
  for (const Json& file : settings["files"])
    if (file.is_object() && file.contains("sha256")) digests.push_back(file["sha256"].dump());
  return digests;
}

bool one_origin(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return !a.empty() && a == b;
}

struct SharedTimes {
  std::size_t steps = 0;  ///< that both runs recorded
  std::size_t equal = 0;  ///< of them, with the same seconds to the last bit
};

SharedTimes shared_times(const store::StepColumns& a, const store::StepColumns& b) {
  SharedTimes found;
  if (a.seconds.size() != a.size() || b.seconds.size() != b.size()) return found;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a.step[i] == b.step[j]) {
      ++found.steps;
      found.equal += a.seconds[i] == b.seconds[j] ? 1 : 0;
    }
    const bool next_a = a.step[i] <= b.step[j], next_b = b.step[j] <= a.step[i];
    i += next_a ? 1 : 0;
    j += next_b ? 1 : 0;
  }
  return found;
}

/// Clocks count nanoseconds: no two trainings took the same time for step after step.
std::string one_clock(const store::RecordedRun& a, const store::RecordedRun& b) {
  constexpr std::size_t kFewestTimes = 3;
  const SharedTimes times = shared_times(a.steps, b.steps);
  if (times.equal < kFewestTimes || 2 * times.equal < times.steps) return "";
  return std::to_string(times.equal) + " of " + std::to_string(times.steps) +
         " common steps took both runs the same time to the last bit: one record is a copy of the "
         "other";
}

std::string copies_of_runs(const ParityReport& report) {
  const auto &a = report.a.run, &b = report.b.run;
  if (!a || !b) return "";
  const std::string nothing = ": that they agree says nothing about two trainings.";
  if (a->run_id == b->run_id)
    return "Both sides are records of one run (" + a->run_id + ")" + nothing;
  if (one_origin(logs_of(*a), logs_of(*b)))
    return "Both sides were imported from the same log" + nothing;
  if (const auto copied = one_clock(*a, *b); !a->imported && !b->imported && !copied.empty())
    return copied + nothing;
  const bool logs = a->imported && b->imported && report.trajectory;
  if (!logs || report.trajectory->largest != 0) return "";
  const std::size_t losses = report.trajectory->loss.values.size();
  if (losses < kFewestLosses) return "";
  return "All " + std::to_string(losses) +
         " losses that both logs have are the same numbers: two trainings of equal bits, or two "
         "copies of one log.";
}

std::string copies_of_evaluations(const ParityReport& report) {
  const auto &a = report.a.evaluation, &b = report.b.evaluation;
  if (!a || !b) return "";
  const std::string nothing = ": that they agree says nothing about two evaluations.";
  if (a->evaluation_id == b->evaluation_id)
    return "Both sides are one evaluation (" + a->evaluation_id + ")" + nothing;
  if (one_origin(files_of(*a), files_of(*b)))
    return "Both evaluations were imported from the same files" + nothing;
  return "";
}

}  // namespace

std::vector<std::string> caveats_of_copies(const ParityReport& report) {
  std::vector<std::string> caveats;
  for (const auto& caveat : {copies_of_runs(report), copies_of_evaluations(report)})
    if (!caveat.empty()) caveats.push_back(caveat);
  return caveats;
}

std::optional<std::string> one_model(const ParityReport& report) {
  const auto &a = report.a.evaluation, &b = report.b.evaluation;
  if (report.kind == Kind::kCheckpoint || !a || !b) return std::nullopt;
  if (a->weights_digest.empty() || a->weights_digest != b->weights_digest) return std::nullopt;
  const std::string weights = "both evaluations are of the same weights";
  if (!report.trajectory) return weights;
  const double decimals = (rounding_of(*report.a.run) + rounding_of(*report.b.run)) / 2;
  const bool same =
      report.identity.same_training() || a->step == 0 || report.trajectory->largest <= decimals;
  return same ? std::nullopt : std::optional(weights + ", though the losses differ");
}

}  // namespace olmo::report
