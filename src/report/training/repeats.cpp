#include "report/training/repeats.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "core/text/text.h"
#include "report/comparability/settings.h"
#include "report/gate.h"
#include "report/record/contradictions.h"
#include "report/stats/curve_difference.h"
#include "report/stats/run_groups.h"
#include "report/stats/trajectory_statistics.h"
#include "report/training/decimals.h"

namespace olmo::report {
namespace {

/// Runs of a side from which on a verdict about the setups has a chance.
constexpr std::int64_t kRepeats = 4;
/// Of the stretch's points that a run must have.
constexpr double kFewestOfStretch = 0.9;
constexpr std::size_t kFewestSharedPoints = 20;

/// The runs of one side that are taken, the compared one first.
using Members = std::vector<const store::RecordedRun*>;

std::string label_of(const Repeat& repeat) {
  return repeat.run_id + (repeat.tags.empty() ? "" : " (" + repeat.tags + ")");
}

Repeat describe(const store::RecordedRun& run) {
  Repeat repeat{.side = std::nullopt,
                .run_id = run.run_id,
                .tags = "",
                .host = place_of(run).host,
                .seed = seed_of(run),
                .known_by = "",
                .left_out = ""};
  repeat.tags = joined(run.tags);
  return repeat;
}

/// Where the run has a loss, of the tokens of a stretch.
std::vector<std::int64_t> tokens_in(const store::RecordedRun& run, const Stretch& stretch) {
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const std::int64_t at = run.steps.tokens[i];
    const bool inside = stretch.from <= at && at <= stretch.to &&
                        (stretch.tokens.empty() ||
                         std::binary_search(stretch.tokens.begin(), stretch.tokens.end(), at));
    if (inside && std::isfinite(run.steps.loss[i])) found.push_back(at);
  }
  return found;
}

std::vector<double> losses_in(const store::RecordedRun& run, const Stretch& stretch) {
  const auto tokens = tokens_in(run, stretch);
  std::vector<double> losses;
  for (std::size_t i = 0, j = 0; i < run.steps.size() && j < tokens.size(); ++i) {
    if (run.steps.tokens[i] != tokens[j]) continue;
    losses.push_back(run.steps.loss[i]);
    ++j;
  }
  return losses;
}

/// So far off the mean over a side's runs may be, where their decimals hide what moves.
double hidden_of(const std::vector<const store::RecordedRun*>& runs, const Stretch& stretch) {
  double sum = 0;
  for (const auto* run : runs) sum += hidden_in_mean(*run, losses_in(*run, stretch)).bias;
  return sum / static_cast<double>(runs.size());
}

std::string why_not_long_enough(const store::RecordedRun& run, const Stretch& stretch) {
  const std::size_t points = tokens_in(run, stretch).size();
  const bool as_long = run.steps.size() > 0 && run.steps.tokens.front() <= stretch.from &&
                       run.steps.tokens.back() >= stretch.to;
  const double least = stretch.tokens.empty()
                           ? static_cast<double>(kFewestSharedPoints)
                           : kFewestOfStretch * static_cast<double>(stretch.tokens.size());
  if (as_long && static_cast<double>(points) >= least) return "";
  return "it has " + std::to_string(points) + " points of the compared stretch" +
         (stretch.tokens.empty() ? "" : ", which has " + std::to_string(stretch.tokens.size()));
}

/// Why a run of a side is no repeat of the side's compared one; empty: it is.
std::string why_no_repeat(const store::RecordedRun& run, const store::RecordedRun& compared,
                          const Stretch& stretch) {
  if (!run.damage.empty()) return "its record is damaged: " + run.damage.front().sentence;
  if (const auto altered = contradictions_of(run); !altered.empty())
    return "its record is damaged: " + altered.front();
  if (is_branch(run) != is_branch(compared) ||
      (is_branch(run) && run.steps.size() > 0 && compared.steps.size() > 0 &&
       run.steps.step.front() != compared.steps.step.front()))
    return "it goes on from a checkpoint, so that it is no training of its own";
  if (!are_repeats(compared, run)) return "another model, data or settings than the side's";
  return why_not_long_enough(run, stretch);
}

/// The first member that is the same run.
const store::RecordedRun* same_in(const Members& members, const store::RecordedRun& run) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto* other) { return is_same_run(*other, run); });
  return found == members.end() ? nullptr : *found;
}

struct Groups {
  Members a, b;
  std::vector<Repeat> looked_at;
};

Groups choose(const store::RecordedRun& a, const store::RecordedRun& b,
              const std::vector<Candidate>& candidates, const Stretch& stretch) {
  Groups groups{.a = {&a}, .b = {&b}, .looked_at = {describe(a), describe(b)}};
  for (std::size_t i = 0; i < 2; ++i) {
    groups.looked_at[i].side = i == 0 ? 'A' : 'B';
    groups.looked_at[i].known_by = "it is compared";
    groups.looked_at[i].taken = true;
  }
  for (const Candidate& candidate : candidates) {
    const store::RecordedRun& run = candidate.run;
    if (!is_tagged_repeat(run)) continue;
    const Assigned assigned = side_of(candidate, a, b);
    Repeat repeat = describe(run);
    repeat.side = assigned.side;
    repeat.known_by = assigned.reason;
    if (!assigned.side) {
      repeat.left_out = assigned.reason;
    } else {
      const bool of_a = assigned.side == 'A';
      Members &own = of_a ? groups.a : groups.b, &others = of_a ? groups.b : groups.a;
      repeat.left_out = why_no_repeat(run, of_a ? a : b, stretch);
      const auto* clone = same_in(own, run);
      repeat.is_copy = repeat.left_out.empty() && clone;
      if (repeat.is_copy)
        repeat.left_out = "bit for bit the run " + clone->run_id + ", which counts once";
      // A log that lies in both databases under two ids, say.
      const auto* twin = run.imported && assigned.by_database ? same_in(others, run) : nullptr;
      if (repeat.left_out.empty() && twin)
        repeat.left_out = "the run " + twin->run_id +
                          " of the other side has the same curve, and only the database tells "
                          "their sides";
      repeat.taken = repeat.left_out.empty();
      if (repeat.taken) own.push_back(&run);
    }
    groups.looked_at.push_back(std::move(repeat));
  }
  return groups;
}

std::string name_of(const Repeat& repeat) { return "the repeat " + label_of(repeat); }

std::string of_side(const Repeat& repeat) {
  return repeat.side ? std::string(" of ") + *repeat.side : "";
}

/// What is not the compared run's setup in a repeat that is taken; empty: nothing that is known.
std::string other_setup(const store::RecordedRun& run, const store::RecordedRun& compared) {
  const std::string here = place_of(run).hardware, there = place_of(compared).hardware;
  if (!here.empty() && !there.empty() && here != there)
    return "ran on other hardware (" + here + ") than the compared run (" + there + ")";
  if (!settings_of(compared).empty() && settings_of(run).empty())
    return "tells no config, so that its setup is not known";
  const std::string unread = unread_config_of(run);
  return unread.empty() ? "" : "has a record that " + unread;
}

/// Names what is left out, and what the spread stands on that is not the compared setup.
void tell(const Groups& groups, const std::vector<Candidate>& candidates, NoiseFloor& noise) {
  for (const Repeat& repeat : groups.looked_at) {
    const auto found = std::ranges::find_if(
        candidates, [&](const Candidate& one) { return one.run.run_id == repeat.run_id; });
    if (found == candidates.end()) continue;  // compared
    const store::RecordedRun& run = found->run;
    // A divergence is a finding about the setup, which the spread of the others does not hold.
    if (run.status == "diverged" && repeat.side) {
      const auto end = run.steps.size() == 0 ? 0 : run.steps.step.back();
      noise.lost.push_back("Diverged: " + name_of(repeat) + of_side(repeat) + " in step " +
                           std::to_string(end + 1) +
                           ". What is said of repeats is said of those that did not.");
      noise.caps.push_back(name_of(repeat) + of_side(repeat) + " diverged");
    } else if (!repeat.taken && !repeat.is_copy && !is_branch(run)) {
      noise.lost.push_back("Left out of the repeats" + of_side(repeat) + ": " + label_of(repeat) +
                           ", as " + repeat.left_out + ".");
    }
    if (!repeat.taken) continue;
    const std::string other =
        other_setup(run, repeat.side == 'A' ? *groups.a.front() : *groups.b.front());
    if (!other.empty()) noise.caps.push_back(name_of(repeat) + of_side(repeat) + " " + other);
  }
}

/// Only tokens at which all of them have a loss: else a gap would shift a mean.
Stretch in_common(const Stretch& stretch, const Groups& groups) {
  Stretch common = stretch;
  if (stretch.tokens.empty()) return common;
  for (const Members* members : {&groups.a, &groups.b}) {
    for (const auto* run : *members) {
      const auto has = tokens_in(*run, common);
      std::vector<std::int64_t> both;
      std::set_intersection(common.tokens.begin(), common.tokens.end(), has.begin(), has.end(),
                            std::back_inserter(both));
      common.tokens = std::move(both);
    }
  }
  // Many runs that each miss other points: then each has its own.
  const bool enough = common.tokens.size() >= std::min(kFewestSharedPoints, stretch.tokens.size());
  return enough ? common : stretch;
}

/// One value for each independent run: a seed's mean, or the run's where all have one seed.
struct Unit {
  std::optional<std::uint64_t> seed;
  double value = 0;
};

std::vector<Unit> units_of(const Members& members, const std::vector<double>& values,
                           bool by_seed) {
  std::vector<Unit> units;
  std::map<std::uint64_t, std::vector<double>> seeds;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto seed = seed_of(*members[i]);
    if (by_seed && seed)
      seeds[*seed].push_back(values[i]);
    else
      units.push_back({std::nullopt, values[i]});
  }
  for (const auto& [seed, of_seed] : seeds)
    units.push_back({seed, std::accumulate(of_seed.begin(), of_seed.end(), 0.0) /
                               static_cast<double>(of_seed.size())});
  return units;
}

/// Whether the runs of the two sides vary in their seeds.
bool seeds_vary(const Groups& groups) {
  std::set<std::uint64_t> seeds;
  for (const Members* members : {&groups.a, &groups.b})
    for (const auto* run : *members)
      if (const auto seed = seed_of(*run)) seeds.insert(*seed);
  return seeds.size() > 1;
}

std::vector<double> values_of(const std::vector<Unit>& units) {
  std::vector<double> values;
  for (const Unit& unit : units) values.push_back(unit.value);
  return values;
}

/// Of all runs about the mean of their side.
std::optional<double> pooled_deviation(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0, degrees = 0;
  for (const auto* side : {&a, &b}) {
    if (side->size() < 2) continue;
    const double deviation = sample_standard_deviation(*side);
    squares += deviation * deviation * static_cast<double>(side->size() - 1);
    degrees += static_cast<double>(side->size() - 1);
  }
  return degrees > 0 ? std::optional(std::sqrt(squares / degrees)) : std::nullopt;
}

void add_test(NoiseFloor& noise, const Estimate& estimate, const PermutationTest& permutation,
              const std::string& method, std::int64_t points) {
  noise.p = noise.hidden > 0 ? std::max(permutation.p, estimate.p(noise.hidden)) : permutation.p;
  noise.minimum_p = permutation.minimum_p;
  noise.difference = estimate;
  noise.tests.push_back({.endpoint = Endpoint::kLoss,
                         .name = "mean loss of the last stretch",
                         .method = method,
                         .unit = "nats",
                         .noise = "",
                         .estimate = estimate.value,
                         .interval90 = widened(estimate.interval(kEquivalenceLevel), noise.hidden),
                         .interval95 = widened(estimate.interval(0.95), noise.hidden),
                         .p = noise.p,
                         .standard_error = estimate.error,
                         .degrees_of_freedom = estimate.degrees,
                         .hidden = noise.hidden,
                         .n = points,
                         .k_a = noise.k_a,
                         .k_b = noise.k_b,
                         .equal_bits = estimate.value == 0 && estimate.error == 0});
}

void test_groups(NoiseFloor& noise, const Groups& groups, std::int64_t points) {
  const bool by_seed = seeds_vary(groups);
  const auto a = units_of(groups.a, noise.values_a, by_seed);
  const auto b = units_of(groups.b, noise.values_b, by_seed);
  std::vector<double> differences;
  for (const Unit& one : a)
    for (const Unit& other : b)
      if (one.seed && one.seed == other.seed) differences.push_back(other.value - one.value);
  noise.k_a = std::ssize(a);
  noise.k_b = std::ssize(b);
  noise.seed_deviation = pooled_deviation(values_of(a), values_of(b));
  if (noise.k_a < 2 || noise.k_b < 2) return;
  const std::int64_t pairs = std::ssize(differences);
  if (pairs >= 2 && (pairs >= kRepeats || pairs == std::min(noise.k_a, noise.k_b))) {
    noise.pairs = noise.k_a = noise.k_b = pairs;
    const Estimate estimate = paired_difference(differences);
    noise.margin_deviation = {
        *noise.seed_deviation,
        paired_margin_deviations(pairs, estimate.error, *noise.seed_deviation)};
    return add_test(noise, estimate, paired_permutation_test(differences),
                    "paired t, " + std::to_string(pairs) + " seeds", points);
  }
  const auto in_a = values_of(a), in_b = values_of(b);
  noise.margin_deviation = {*noise.seed_deviation, margin_deviations(noise.k_a, noise.k_b)};
  add_test(noise, welch_difference(in_a, in_b), permutation_test(in_a, in_b),
           "Welch, " + std::to_string(noise.k_a) + " and " + std::to_string(noise.k_b) + " runs",
           points);
}

/// Ten bins per factor of ten tokens.
using Envelope = std::map<int, double>;

/// The largest |difference| of any repeat to its run in each bin.
void add_to_envelope(Envelope& bins, const Members& members) {
  const store::RecordedRun& run = *members.front();
  for (std::size_t k = 1; k < members.size(); ++k) {
    const CurveDifference apart = difference_on_common_tokens(
        {run.steps.tokens, run.steps.loss}, {members[k]->steps.tokens, members[k]->steps.loss});
    for (std::size_t i = 0; i < apart.tokens.size(); ++i) {
      const int bin =
          static_cast<int>(std::floor(10 * std::log10(static_cast<double>(apart.tokens[i]))));
      bins[bin] = std::max(bins[bin], std::abs(apart.values[i]));
    }
  }
}

std::string what_to_run(const NoiseFloor& noise) {
  if (noise.k_a >= kRepeats && noise.k_b >= kRepeats) return "";
  return "At least " + std::to_string(kRepeats) + " runs a side are needed (now " +
         std::to_string(noise.k_a) + " and " + std::to_string(noise.k_b) +
         "): train the same config again on each side, best with the same seeds on both, and mark "
         "the repeats: olmo-harness runs tag FILE.db:RUN_ID noise:seed (or noise:threads, "
         "noise:ulp, noise:library).";
}

}  // namespace

double mean_loss(const store::RecordedRun& run, const Stretch& stretch) {
  const auto losses = losses_in(run, stretch);
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

void test_repeats(NoiseFloor& noise, double margin) {
  if (noise.difference)
    noise.equivalence = equivalence_despite(*noise.difference, noise.hidden, margin);
}

NoiseFloor noise_floor(const store::RecordedRun& a, const store::RecordedRun& b,
                       const std::vector<Candidate>& candidates, const Stretch& stretch) {
  Groups groups = choose(a, b, candidates, stretch);
  const Stretch common = in_common(stretch, groups);
  NoiseFloor noise;
  tell(groups, candidates, noise);
  for (const auto* run : groups.a) noise.values_a.push_back(mean_loss(*run, common));
  for (const auto* run : groups.b) noise.values_b.push_back(mean_loss(*run, common));
  auto next_a = noise.values_a.begin(), next_b = noise.values_b.begin();
  for (Repeat& repeat : groups.looked_at) {
    if (!repeat.taken) continue;
    repeat.mean = repeat.side == 'A' ? *next_a++ : *next_b++;
    const bool compared = &repeat - groups.looked_at.data() < 2;
    if (!compared) (repeat.side == 'A' ? noise.runs_a : noise.runs_b).push_back(label_of(repeat));
  }
  noise.looked_at = std::move(groups.looked_at);
  Envelope bins;
  for (const Members* members : {&groups.a, &groups.b}) add_to_envelope(bins, *members);
  for (const auto& [bin, largest] : bins) {
    noise.envelope_tokens.push_back(std::pow(10.0, (bin + 0.5) / 10));
    noise.envelope.push_back(largest);
  }
  noise.hidden = hidden_of(groups.a, common) + hidden_of(groups.b, common);
  test_groups(noise, groups, std::ssize(common.tokens));
  noise.branches = find_branches(a, b, candidates);
  if (noise.branches.test) {
    // A handful of repeats cannot certify anything, and would keep the branches from it.
    if (noise.k_a < kRepeats || noise.k_b < kRepeats) noise.tests.clear();
    noise.tests.push_back(*noise.branches.test);
  }
  noise.to_run = what_to_run(noise);
  return noise;
}

}  // namespace olmo::report
