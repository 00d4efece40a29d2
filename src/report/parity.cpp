#include "report/parity.h"

#include <algorithm>
#include <future>

#include "core/error.h"
#include "core/text/text.h"
#include "report/comparability/comparability.h"
#include "report/comparability/loss_means.h"
#include "report/comparability/loss_spans.h"
#include "report/comparability/stated_tokens.h"
#include "report/decide.h"
#include "report/evaluations/unlike_scores.h"
#include "report/parity_evaluations.h"
#include "report/parity_margins.h"
#include "report/parity_training.h"

namespace olmo::report {
namespace {

/// The VALUE of --assume that says: the same on both sides.
constexpr char kEqual[] = "equal";

void add_damage(ParityReport& report, const Side& side, const std::vector<std::string>& sentences) {
  for (const auto& sentence : sentences)
    report.damage.push_back(side.label + ": " + sentence + ".");
}

/// Runs that both have no steps are there for their evaluations alone.
void add_runs(ParityReport& report, const SideRecords& a, const SideRecords& b,
              const ParityOptions& options) {
  // The sides have a connection each, so both can be read at once.
  auto other = std::async(std::launch::async, [&] { add_run(report.b, b); });
  add_run(report.a, a);
  other.get();
  if (report.a.has_steps() && report.b.has_steps()) {
    auto found = align_unlike_steps(*report.a.run, *report.b.run);
    if (!found.damage.empty()) report.damage.push_back(std::move(found.damage));
    if (!found.caveat.empty()) report.caveats.push_back(std::move(found.caveat));
  }
  for (Side* side : {&report.a, &report.b})
    if (side->run && options.tokens_per_step) give_tokens(*side->run, *options.tokens_per_step);
  if (!report.a.run || !report.b.run || report.a.has_steps() || report.b.has_steps()) return;
  report.a.run.reset();
  report.b.run.reset();
}

void make_losses_alike(ParityReport& report) {
  auto found = align_losses(*report.a.run, *report.b.run);
  report.over_labels = found.over_labels;
  auto spans = align_spans(*report.a.run, *report.b.run);
  report.mean_spans = std::move(spans.spans);
  for (auto* caveat : {&found.caveat, &spans.caveat})
    if (!caveat->empty()) report.caveats.push_back(std::move(*caveat));
}

/// States what a record does not tell. Against what the other tells it is a mismatch.
void assume(ParityReport& report, const std::string& key, const std::string& value) {
  bool found = false;
  auto& unknown = report.gate.unknown;
  for (auto fact = unknown.begin(); fact != unknown.end();) {
    const std::string& known = fact->a.empty() ? fact->b : fact->a;
    const bool contradicts = !known.empty() && value != known && value != kEqual;
    found |= fact->key == key;
    if (fact->key == key && contradicts) {
      report.gate.mismatches.push_back({key, fact->a.empty() ? value : fact->a,
                                        fact->b.empty() ? value : fact->b, fact->if_different,
                                        fact->reason});
      fact = unknown.erase(fact);
      continue;
    }
    if (fact->key == key) fact->assumed = value;
    ++fact;
  }
  if (!found)
    report.caveats.push_back("--assume " + key +
                             " was not needed: the records tell it, or nothing "
                             "of that name is compared.");
}

/// A database that is named alone stands for its latest run; its tagged repeats count, too. What
/// else it holds is told.
void add_other_runs(ParityReport& report, char letter, const Side& side,
                    const SideRecords& records) {
  if (records.is_named || !side.run) return;
  std::int64_t others = -1;  // without the compared one
  for (const auto& id : store::run_ids(records.database())) {
    const bool is_repeat = std::ranges::any_of(report.noise.looked_at, [&](const Repeat& repeat) {
      return repeat.taken && repeat.run_id == id && id != side.run->run_id;
    });
    others += is_repeat ? 0 : 1;
  }
  if (others > 0)
    report.caveats.push_back(std::string("Of ") + letter + ", " + side.database +
                             ", the latest run is compared, " + side.run->run_id + "; it holds " +
                             counted(others, "run") + " more.");
}

void compare_records(ParityReport& report, const SideRecords& a, const SideRecords& b,
                     const ParityOptions& options) {
  if (options.kind != Kind::kCheckpoint) add_runs(report, a, b, options);
  choose_evaluations(report, a, b, options);
  add_damage(report, report.a, damage_of(report.a));
  add_damage(report, report.b, damage_of(report.b));
  const bool training = report.a.has_steps() && report.b.has_steps();
  if (training) make_losses_alike(report);
  if (report.damage.empty())
    report.kind = find_kind(report.a, report.b, options.kind, report.kind_reason);
  report.gate = compare_settings(report.a, report.b, report.kind);
  if (report.over_labels) excuse_gradient_scale(report.gate, *report.a.run, *report.b.run);
  for (const auto& [key, value] : options.assume) assume(report, key, value);
  if (std::ranges::any_of(report.gate.unknown, [](const auto& fact) {
        return fact.key == kInitialWeights && fact.assumed == kEqual;
      }))
    excuse_drawing(report.gate);
  if (training) {
    report.identity = find_identity(*report.a.run, *report.b.run, {a.database(), a.run_id},
                                    {b.database(), b.run_id});
    excuse_settings(report.gate, *report.a.run, *report.b.run, report.identity);
    if (const auto sentence = contradiction_of(report.identity); !sentence.empty())
      report.damage.push_back("The records contradict each other: " + sentence + ".");
  }
  if (!report.damage.empty()) return;
  if (training && report.a.evaluation && report.identity.same_training()) {
    const UnlikeScores unlike = scores_that_differ(a, b);
    report.unlike_scores = unlike.first;
    add_damage(report, report.a, unlike.damage_a);
    add_damage(report, report.b, unlike.damage_b);
    if (!report.damage.empty()) return;
  }
  if (training) {
    compare_training(report, a, b, options);
  } else if (report.a.run || report.b.run) {
    report.damage.push_back((report.a.run ? report.b : report.a).label +
                            " holds no steps, the other side does.");
  }
  add_other_runs(report, 'A', report.a, a);
  add_other_runs(report, 'B', report.b, b);
  const EvaluatedRuns runs = evaluated_runs(report, a, b);
  set_margins(report, a, b, runs, options);
  if (report.a.evaluation) compare_evaluations(report, a, b, runs);
  if (!options.noise.empty()) add_published(report, options.noise);
}

}  // namespace

ParityReport compare(const std::string& a, const std::string& b, const ParityOptions& options) {
  ParityReport report;
  report.command = options.command;
  report.version = options.version;
  if (options.kind) report.kind = *options.kind;
  const auto name_a = store::parse_run_name(a), name_b = store::parse_run_name(b);
  report.a = name_side(a, name_a);
  report.b = name_side(b, name_b);
  hash_database(report.a, name_a);
  hash_database(report.b, name_b);
  if (report.a.label == report.b.label) {
    report.a.label += " (A)";
    report.b.label += " (B)";
  }
  const Cluster cluster_a = options.cluster_a.empty() ? Cluster{} : read_cluster(options.cluster_a);
  const Cluster cluster_b = options.cluster_b.empty() ? Cluster{} : read_cluster(options.cluster_b);
  try {
    const SideRecords records_a = open_records(name_a, options.reading),
                      records_b = open_records(name_b, options.reading);
    compare_records(report, records_a, records_b, options);
    if (!options.skip_evaluations) add_scores(report, records_a, records_b);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDamaged) throw;
    report.damage.push_back(error.what());
  }
  decide(report);
  if (report.a.run) report.efficiency_a = efficiency_of(*report.a.run, cluster_a);
  if (report.b.run) report.efficiency_b = efficiency_of(*report.b.run, cluster_b);
  return report;
}

}  // namespace olmo::report
