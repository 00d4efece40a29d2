#include "report/parity_margins.h"

#include <algorithm>
#include <set>

#include "core/text/text.h"
#include "report/evidence.h"
#include "report/training/published_noise.h"
#include "store/runs/declarations.h"

namespace olmo::report {
namespace {

/// The earliest time that the record tells of itself.
std::string beginning_of(const store::RecordedRun& run) {
  std::string first = run.created_utc;
  for (const auto& attempt : run.attempts)
    if (!attempt.started_utc.empty()) first = std::min(first, attempt.started_utc);
  for (const auto& event : run.events) first = std::min(first, event.utc);
  return first;
}

/// The last declaration of an endpoint counts; of both sides' the stricter, so that A and B may
/// change places.
std::map<std::string, DeclaredMargin> declared_margins(ParityReport& report, const SideRecords& a,
                                                       const SideRecords& b) {
  std::map<std::string, DeclaredMargin> stricter;
  const auto add = [&](const Side& side, const SideRecords& records, const Side& other) {
    const auto declarations = store::read_declarations(records.database(), records.run_id);
    // Altered ones are damage of the side's record (read_whole_run).
    if (declarations.empty() ||
        !store::altered_declarations(records.database(), records.run_id, declarations).empty())
      return;
    std::map<std::string, DeclaredMargin> latest;
    for (const auto& made : declarations)
      for (const auto& [name, value] : parse_margins(made.margins))
        latest[name] = {value, made.who, made.created_utc};
    for (const auto& [name, margin] : latest) {
      const auto found = stricter.find(name);
      if (found == stricter.end() || margin.value < found->second.value) stricter[name] = margin;
    }
    const auto& last = declarations.back();
    if (declarations.size() > 1)
      report.caveats.push_back("The margins of " + side.label + " were declared " +
                               std::to_string(declarations.size()) + " times; the last counts.");
    if (other.run && beginning_of(*other.run) < last.created_utc)
      report.caveats.push_back("The record of " + other.label + " began at " +
                               beginning_of(*other.run) + ", before the margins of " + side.label +
                               " were declared (" + last.created_utc + ").");
  };
  add(report.a, a, report.b);
  add(report.b, b, report.a);
  return stricter;
}

}  // namespace

void set_margins(ParityReport& report, const SideRecords& a, const SideRecords& b,
                 const EvaluatedRuns& runs, const ParityOptions& options) {
  const auto declared = declared_margins(report, a, b);
  for (const auto& [name, value] : options.margins) {
    const auto found = declared.find(name);
    if (found != declared.end() && found->second.value != value)
      report.caveats.push_back("--margin " + name + " is not used: a declared margin stays.");
  }
  report.margins = resolve_margins({.declared = declared,
                                    .command_line = options.margins,
                                    .loss_deviation = report.noise.margin_deviation,
                                    .macro_deviation = macro_deviation(runs),
                                    .one_trajectory = report.kind == Kind::kTrajectory});
  test_repeats(report.noise, report.margins.loss.value);
  if (report.trajectory) test_trajectory(*report.trajectory, report.margins.loss);
}

namespace {

std::string metric_of(const Test& test) {
  return test.endpoint == Endpoint::kLoss    ? "loss"
         : test.endpoint == Endpoint::kMacro ? "macro"
                                             : test.name;
}

/// Those of the file that name nothing that is compared here: another task, or a slip of the pen.
void tell_unused(const PublishedNoise& noise, const std::vector<Test>& pairs,
                 std::vector<std::string>& caveats) {
  std::set<std::string> known = {"loss", "macro"}, unknown;
  for (const Test& pair : pairs) known.insert(metric_of(pair));
  for (const auto& deviation : noise.deviations)
    if (!known.contains(deviation.metric)) unknown.insert("`" + deviation.metric + "`");
  if (!unknown.empty())
    caveats.push_back("--noise: nothing is compared here by the metric " +
                      joined({unknown.begin(), unknown.end()}) + ", which " + noise.source +
                      " tells; compared are " + joined({known.begin(), known.end()}) + ".");
}

}  // namespace

void add_published(ParityReport& report, const std::string& path) {
  const PublishedNoise noise = read_noise(path);
  if (!report.trajectory) {
    report.caveats.push_back("--noise is not used: without a training the size is not known.");
    return;
  }
  std::vector<Test> pairs = tests_of_models(report);
  if (report.kind == Kind::kOutcome && report.trajectory->test)
    pairs.push_back(*report.trajectory->test);
  const double tokens = report.trajectory->tokens_known
                            ? static_cast<double>(report.trajectory->loss.tokens.back())
                            : 0;
  // A log may not tell the size; the sides may change places.
  const auto parameters =
      static_cast<double>(std::max(report.a.run->n_parameters, report.b.run->n_parameters));
  tell_unused(noise, pairs, report.caveats);
  std::vector<Test> made;
  for (const Test& pair : pairs) {
    const auto& has = report.noise.tests;
    const bool measured = std::any_of(
        has.begin(), has.end(), [&](const Test& test) { return test.endpoint == pair.endpoint; });
    const std::string metric = metric_of(pair);
    const auto* deviation = deviation_for(noise, metric, parameters, tokens);
    if (measured || pair.difference_only) continue;
    if (deviation && pair.too_few)
      report.caveats.push_back("--noise: " + pair.name +
                               " has too few values (n = " + std::to_string(pair.n) +
                               "): how far it is off by chance is not known.");
    else if (deviation)
      made.push_back(with_published_noise(pair, *deviation, noise.source));
    else if (pair.endpoint < Endpoint::kBpb)
      report.caveats.push_back("--noise: " + noise.source + " has no deviation of " + metric +
                               " near this size and number of tokens, or they are not known.");
  }
  report.noise.tests.insert(report.noise.tests.end(), made.begin(), made.end());
}

}  // namespace olmo::report
