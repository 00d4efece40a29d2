#include "report/parity.h"

#include <algorithm>
#include <future>
#include <map>

#include "core/error.h"
#include "core/text.h"
#include "report/comparability.h"
#include "report/decide.h"
#include "report/evaluation_choice.h"
#include "report/evaluation_groups.h"
#include "report/evidence.h"
#include "report/published_noise.h"
#include "report/stated_tokens.h"
#include "report/stats/run_groups.h"
#include "store/declarations.h"

namespace olmo::report {
namespace {

using store::EvaluationDb;

/// The VALUE of --assume that says: the same on both sides.
constexpr char kEqual[] = "equal";

void choose_evaluations(ParityReport& report, const SideRecords& a, const SideRecords& b,
                        const ParityOptions& options) {
  if (options.skip_evaluations) return;
  auto chosen = choose_evaluations(report.a, a, report.b, b, options.kind);
  report.a.evaluation = std::move(chosen.a);
  report.b.evaluation = std::move(chosen.b);
  if (!chosen.problem.empty()) report.damage.push_back(chosen.problem);
  report.caveats.insert(report.caveats.end(), chosen.caveats.begin(), chosen.caveats.end());
}

void add_damage(ParityReport& report, const Side& side) {
  for (const auto& sentence : damage_of(side))
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

/// Where a run has losses: "steps 1, 3, 5 … 399".
std::string places_of(const store::RecordedRun& run, const char* unit,
                      const std::vector<std::int64_t>& at) {
  constexpr std::size_t kShown = 3;
  std::string text = run.label + " has " + unit;
  for (std::size_t i = 0; i < std::min(kShown, at.size()); ++i)
    text += (i == 0 ? " " : ", ") + std::to_string(at[i]);
  return at.size() <= kShown ? text : text + " … " + std::to_string(at.back());
}

/// Two records that are sound, and of which no step is the same.
void add_nothing_in_common(ParityReport& report) {
  const store::RecordedRun &a = *report.a.run, &b = *report.b.run;
  const bool tokens = a.tokens_known && b.tokens_known;
  const char* unit = tokens ? "losses at tokens" : "losses at steps";
  const auto at = [&](const store::RecordedRun& run) {
    return places_of(run, unit, tokens ? run.steps.tokens : run.steps.step);
  };
  report.gate.mismatches.insert(
      report.gate.mismatches.begin(),
      {"common steps", "", "", MismatchClass::kFatal,
       "There is none: " + at(a) + "; " + at(b) + ". Compared is what both sides have."});
}

/// Steps that are numbered differently cannot be set against each other; what else parts caps the
/// verdict (conditions_of).
void add_partings(ParityReport& report) {
  const std::string& unit = report.trajectory->unit_of_partings;
  for (const Parting& parting : report.trajectory->partings) {
    if (parting.cause == Parting::Cause::kShifted)
      report.gate.mismatches.insert(
          report.gate.mismatches.begin(),
          {unit + " numbers", "", "", MismatchClass::kFatal, sentence_of(parting, unit)});
    else
      report.caveats.push_back(sentence_of(parting, unit));
  }
}

/// As the compared runs were given theirs.
void give_candidate_tokens(store::RecordedRun& run, const ParityReport& report,
                           const ParityOptions& options) {
  const bool told = report.a.run->tokens_known && report.b.run->tokens_known;
  if (options.tokens_per_step)
    give_tokens(run, *options.tokens_per_step);
  else if (const auto stated = stated_tokens(run); told && stated && run.imported)
    give_tokens(run, *stated);
}

/// Logs may tell scores, which nothing is certified of: they are named, and so is what one side
/// alone tells.
void add_scores_of_logs(ParityReport& report) {
  std::map<std::string, std::string> sides;  // "AB", "A" or "B"
  for (const auto& [letter, run] : {std::pair('A', &*report.a.run), std::pair('B', &*report.b.run)})
    if (run->imported)
      for (const auto& metric : run->metrics) sides[metric.name] += letter;
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [name, of] : sides) names[of].push_back(name);
  if (names.empty()) return;
  std::string text = "Not compared: the metrics of the logs (";
  const char* separator = "";
  for (const auto& [of, listed] : names) {
    text += separator + std::string(of == "AB" ? "both tell " : "only " + of + " tells ") +
            joined(listed);
    separator = "; ";
  }
  report.caveats.push_back(text + "). Evaluate a checkpoint of each side to compare scores.");
}

void compare_training(ParityReport& report, const SideRecords& a, const SideRecords& b,
                      const ParityOptions& options) {
  if (const auto reason = axes_differ(*report.a.run, *report.b.run)) {
    report.damage.push_back(*reason);
    return;
  }
  report.trajectory = compare_trajectories(*report.a.run, *report.b.run);
  if (report.trajectory->loss.values.empty()) {
    const bool shifted = !report.trajectory->partings.empty();
    if (shifted && report.kind == Kind::kTrajectory)
      add_partings(report);
    else
      add_nothing_in_common(report);
    report.trajectory.reset();
    return;
  }
  auto candidates = read_candidates(report.a, a, report.b, b);
  for (Candidate& candidate : candidates) give_candidate_tokens(candidate.run, report, options);
  report.noise =
      noise_floor(*report.a.run, *report.b.run, candidates, tested_stretch(*report.trajectory));
  report.trajectory->last_a = report.noise.values_a.front();
  report.trajectory->last_b = report.noise.values_b.front();
  const auto& caveats = report.trajectory->caveats;
  report.caveats.insert(report.caveats.end(), caveats.begin(), caveats.end());
  const auto& lost = report.noise.lost;
  report.caveats.insert(report.caveats.end(), lost.begin(), lost.end());
  add_scores_of_logs(report);
  if (report.kind == Kind::kTrajectory) add_partings(report);  // else other data was asked for
}

/// Of some evaluations the latest of a step that holds what `reference` does.
std::optional<EvaluationData> alike_at(std::optional<std::int64_t> step,
                                       store::RecordDatabase& records,
                                       const std::vector<store::EvaluationEntry>& entries,
                                       const EvaluationData& reference) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->status != "finished" || entry->record.step != step) continue;
    auto data = read_evaluation(records, entry->evaluation_id);
    if (holds_the_same(reference, data)) return data;
  }
  return std::nullopt;
}

/// The evaluations of the compared step, of the compared runs and of those that count as repeats.
EvaluatedRuns evaluated_runs(ParityReport& report, const SideRecords& a, const SideRecords& b) {
  EvaluatedRuns runs;
  std::vector<std::string> without;
  if (!report.a.evaluation || !report.b.evaluation) return runs;
  runs.a.push_back(*report.a.evaluation);
  runs.b.push_back(*report.b.evaluation);
  for (const Repeat& repeat : report.noise.looked_at) {
    const bool compared = repeat.run_id == a.run_id || repeat.run_id == b.run_id;
    if (!repeat.taken || compared) continue;
    auto& of_side = repeat.side == 'A' ? runs.a : runs.b;
    const auto step = of_side[0].step;
    const auto take = [&](const SideRecords& records) {
      auto found = alike_at(step, records.database(),
                            EvaluationDb(records.database()).list(repeat.run_id), runs.a[0]);
      if (!found) return false;
      of_side.push_back(*std::move(found));
      return true;
    };
    if (!take(a) && !take(b)) without.push_back(repeat.run_id);
  }
  if (!without.empty() && runs.a.size() + runs.b.size() > 2)
    report.caveats.push_back("The scores of repeats are without " + joined(without) +
                             ": no finished evaluation of the compared step asked the same.");
  return runs;
}

/// The compared step and those before it at which both runs were evaluated.
EvaluatedRuns evaluated_steps(const ParityReport& report, const SideRecords& a,
                              const SideRecords& b) {
  constexpr std::size_t kMostSteps = 5;
  EvaluatedRuns steps{{*report.a.evaluation}, {*report.b.evaluation}};
  if (report.kind == Kind::kCheckpoint || !steps.a[0].step || steps.a[0].step != steps.b[0].step)
    return {};
  auto last = steps.a[0].step;
  for (auto x = a.evaluations.rbegin(); x != a.evaluations.rend(); ++x) {
    if (steps.a.size() == kMostSteps) break;
    if (!x->record.step || !(x->record.step < last)) continue;
    last = x->record.step;
    auto in_a = alike_at(last, a.database(), a.evaluations, steps.a[0]);
    auto in_b = alike_at(last, b.database(), b.evaluations, steps.a[0]);
    if (!in_a || !in_b) continue;
    steps.a.push_back(*std::move(in_a));
    steps.b.push_back(*std::move(in_b));
  }
  return steps;
}

/// Tests of the setups that have no repeats, with the deviations that somebody published.
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
  std::vector<Test> made;
  for (const Test& pair : pairs) {
    const auto& has = report.noise.tests;
    const bool measured = std::any_of(
        has.begin(), has.end(), [&](const Test& test) { return test.endpoint == pair.endpoint; });
    const std::string metric = pair.endpoint == Endpoint::kLoss    ? "loss"
                               : pair.endpoint == Endpoint::kMacro ? "macro"
                                                                   : pair.name;
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

/// The last declaration of an endpoint counts; of both sides' the stricter, so that A and B may
/// change places.
std::map<std::string, DeclaredMargin> declared_margins(ParityReport& report, const SideRecords& a,
                                                       const SideRecords& b) {
  std::map<std::string, DeclaredMargin> stricter;
  const auto add = [&](const Side& side, const SideRecords& records, const Side& other) {
    const auto declarations = store::read_declarations(records.database(), records.run_id);
    for (const auto& sentence : store::altered_declarations(records.run_id, declarations))
      report.damage.push_back(side.label + ": " + sentence + ".");
    if (declarations.empty()) return;
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
    if (other.run && other.run->created_utc < last.created_utc)
      report.caveats.push_back("The record of " + other.label + " began at " +
                               other.run->created_utc + ", before the margins of " + side.label +
                               " were declared (" + last.created_utc + ").");
  };
  add(report.a, a, report.b);
  add(report.b, b, report.a);
  return stricter;
}

/// Before anything is tested against one: margins depend on declarations and repeats alone.
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

void compare_evaluations(ParityReport& report) {
  const EvaluationData& in_a = *report.a.evaluation;
  const EvaluationData& in_b = *report.b.evaluation;
  report.tasks = compare_tasks(in_a, in_b, report.kind, report.margins);
  report.perplexity = compare_perplexity(in_a, in_b, report.margins.bpb.value);
  if (report.tasks->tasks.empty() && report.tasks->invalid.empty() &&
      report.tasks->mismatched.empty())
    report.tasks.reset();
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

void compare_records(ParityReport& report, const SideRecords& a, const SideRecords& b,
                     const ParityOptions& options) {
  if (options.kind != Kind::kCheckpoint) add_runs(report, a, b, options);
  choose_evaluations(report, a, b, options);
  add_damage(report, report.a);
  add_damage(report, report.b);
  if (report.damage.empty())
    report.kind = find_kind(report.a, report.b, options.kind, report.kind_reason);
  report.gate = compare_settings(report.a, report.b, report.kind);
  for (const auto& [key, value] : options.assume) assume(report, key, value);
  const bool training = report.a.has_steps() && report.b.has_steps();
  if (training) {
    report.identity = find_identity(*report.a.run, *report.b.run, {a.database(), a.run_id},
                                    {b.database(), b.run_id});
    excuse_settings(report.gate, *report.a.run, *report.b.run, report.identity);
  }
  if (!report.damage.empty()) return;
  if (training && report.a.evaluation && report.identity.same_training())
    report.unlike_scores = first_scores_that_differ(a, b).value_or("");
  if (training) {
    compare_training(report, a, b, options);
  } else if (report.a.run || report.b.run) {
    report.damage.push_back((report.a.run ? report.b : report.a).label +
                            " holds no steps, the other side does.");
  }
  const EvaluatedRuns runs = evaluated_runs(report, a, b);
  set_margins(report, a, b, runs, options);
  if (report.a.evaluation) {
    compare_evaluations(report);
    const auto tests = tests_of_repeats(runs);
    report.noise.tests.insert(report.noise.tests.end(), tests.begin(), tests.end());
    report.checkpoints = test_of_checkpoints(evaluated_steps(report, a, b));
  }
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
    if (!options.skip_evaluations) {
      report.scores_a = read_scores(records_a.database(), records_a.evaluations);
      report.scores_b = read_scores(records_b.database(), records_b.evaluations);
    }
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
