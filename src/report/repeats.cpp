#include "report/repeats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/gate.h"
#include "report/stats/curve_difference.h"
#include "report/stats/run_groups.h"
#include "report/stats/trajectory_statistics.h"

namespace olmo::report {
namespace {

/// Runs of a side that a verdict of EQUIVALENT needs.
constexpr std::int64_t kRepeats = 4;

bool is_repeat_tag(const std::string& tag) {
  return tag.rfind("noise", 0) == 0 || tag.rfind("repeat", 0) == 0;
}

std::string label_of(const store::RecordedRun& run) {
  std::string label = run.run_id;
  for (const auto& tag : run.tags)
    if (is_repeat_tag(tag)) label += " (" + tag + ")";
  return label;
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

/// Ten bins per factor of ten tokens.
using Envelope = std::map<int, double>;

/// The largest |difference| of any repeat to its run in each bin.
void add_to_envelope(Envelope& bins, const store::RecordedRun& run,
                     const std::vector<store::RecordedRun>& repeats) {
  for (const auto& repeat : repeats) {
    const CurveDifference apart = difference_on_common_tokens(
        {run.steps.tokens, run.steps.loss}, {repeat.steps.tokens, repeat.steps.loss});
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
         "): train the same config again on each side into the same database, with another seed or "
         "thread count or one weight changed by an ulp, and mark the repeats: olmo-harness "
         "runs tag FILE.db:RUN_ID noise:seed (or noise:threads, noise:ulp, noise:library).";
}

}  // namespace

std::vector<store::RecordedRun> find_repeats(const Side& side,
                                             const store::RecordDatabase& records) {
  std::vector<store::RecordedRun> repeats;
  if (!side.run) return repeats;
  std::set<std::string> ids;
  for (const auto& [run_id, tag] : store::read_tags(records))
    if (run_id != side.run->run_id && is_repeat_tag(tag)) ids.insert(run_id);
  for (const auto& id : ids) {
    store::RecordedRun repeat = store::read_run(records, id);
    const bool as_long = repeat.steps.size() > 0 && side.run->steps.size() > 0 &&
                         repeat.steps.tokens.back() >= side.run->steps.tokens.back();
    if (as_long && repeat.damage.empty() && are_repeats(*side.run, repeat))
      repeats.push_back(std::move(repeat));
  }
  return repeats;
}

NoiseFloor noise_floor(const Side& a, const Side& b,
                       const std::vector<store::RecordedRun>& repeats_a,
                       const std::vector<store::RecordedRun>& repeats_b, double share) {
  NoiseFloor noise;
  Envelope bins;
  const auto gather = [&](const store::RecordedRun& run,
                          const std::vector<store::RecordedRun>& repeats,
                          std::vector<std::string>& labels, std::vector<double>& values) {
    values.push_back(last_mean(run, share));
    for (const auto& repeat : repeats) {
      labels.push_back(label_of(repeat));
      values.push_back(last_mean(repeat, share));
    }
    add_to_envelope(bins, run, repeats);
  };
  gather(*a.run, repeats_a, noise.runs_a, noise.values_a);
  gather(*b.run, repeats_b, noise.runs_b, noise.values_b);
  for (const auto& [bin, largest] : bins) {
    noise.envelope_tokens.push_back(std::pow(10.0, (bin + 0.5) / 10));
    noise.envelope.push_back(largest);
  }
  noise.k_a = std::ssize(noise.values_a);
  noise.k_b = std::ssize(noise.values_b);
  noise.seed_deviation = pooled_deviation(noise.values_a, noise.values_b);
  if (noise.k_a >= 2 && noise.k_b >= 2) {
    const PermutationTest test = permutation_test(noise.values_a, noise.values_b);
    noise.p = test.p;
    noise.minimum_p = test.minimum_p;
    noise.equivalence = equivalence_of(welch_difference(noise.values_a, noise.values_b),
                                       loss_margin(*noise.seed_deviation));
  }
  noise.to_run = what_to_run(noise);
  return noise;
}

double last_mean(const store::RecordedRun& run, double share) {
  const store::StepColumns& steps = run.steps;
  const auto from =
      static_cast<std::int64_t>(std::floor((1 - share) * static_cast<double>(steps.tokens.back())));
  double sum = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps.tokens[i] <= from) continue;
    sum += steps.loss[i];
    ++count;
  }
  return sum / static_cast<double>(count);
}

}  // namespace olmo::report
