#include "report/training/branches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "core/hash.h"
#include "report/comparability/comparability.h"
#include "report/gate.h"
#include "report/record/contradictions.h"
#include "report/stats/run_groups.h"

namespace olmo::report {
namespace {

constexpr std::size_t kFewestSteps = 20;
constexpr std::size_t kLastShare = 10;  // one in so many

using Runs = std::vector<const store::RecordedRun*>;

std::int64_t start_step(const store::RecordedRun& run) { return run.steps.step.front() - 1; }

/// Nothing where the branches are no pair, or have too few steps in common.
std::optional<BranchPair> pair_of(const store::RecordedRun& a, const store::RecordedRun& b) {
  if (start_digest(a) != start_digest(b)) return std::nullopt;
  BranchPair pair{.start = start_digest(a).substr(0, 12),
                  .from_step = start_step(a),
                  .run_a = a.run_id,
                  .run_b = b.run_id,
                  .equal_bits = true};
  std::vector<double> apart;
  for (const auto& [i, j] : common_steps(a.steps, b.steps)) {
    const bool hashed = !a.steps.batch.empty() && !b.steps.batch.empty();
    if (hashed && a.steps.batch[i] != b.steps.batch[j]) return std::nullopt;
    apart.push_back(b.steps.loss[j] - a.steps.loss[i]);
    pair.equal_bits = pair.equal_bits && apart.back() == 0;
  }
  if (apart.size() < kFewestSteps) return std::nullopt;
  pair.steps = std::ssize(apart);
  const auto last =
      std::span<const double>(apart).last(std::max(kFewestSteps, apart.size() / kLastShare));
  pair.difference =
      std::accumulate(last.begin(), last.end(), 0.0) / static_cast<double>(last.size());
  return pair;
}

/// Sound, hashed and no copies; the others are named.
Runs usable(const Runs& runs, char side, Branches& found) {
  Runs kept;
  for (const auto* run : runs) {
    const auto clone = std::find_if(kept.begin(), kept.end(),
                                    [&](const auto* other) { return is_same_run(*other, *run); });
    std::string reason;
    if (!run->damage.empty()) {
      reason = "its record is damaged: " + run->damage.front().sentence;
    } else if (const auto altered = contradictions_of(*run); !altered.empty()) {
      reason = "its record is damaged: " + altered.front();
    } else if (const auto unread = unread_config_of(*run); !unread.empty()) {
      reason = "its record " + unread;
    } else if (run->steps.size() < kFewestSteps) {
      reason = "it has fewer than " + std::to_string(kFewestSteps) + " steps";
    } else if (start_digest(*run).empty()) {
      reason = "its record has no hashes of the state that it began from";
    } else if (clone != kept.end()) {
      reason = "bit for bit the run " + (*clone)->run_id + ", which counts once";
    }
    if (reason.empty())
      kept.push_back(run);
    else
      found.unpaired.push_back({side, run->run_id, reason});
  }
  return kept;
}

Test test_of(const std::vector<BranchPair>& pairs) {
  std::vector<double> differences;
  std::int64_t shortest = pairs.front().steps, steps = 0;
  for (const BranchPair& pair : pairs) {
    differences.push_back(pair.difference);
    shortest = std::min(shortest, pair.steps);
    steps += pair.steps;
  }
  const Estimate estimate = paired_difference(differences);
  const auto count = std::ssize(pairs);
  return {.endpoint = Endpoint::kLoss,
          .name = "loss of branches after " + std::to_string(shortest) + " steps or more",
          .method = "paired t, " + std::to_string(count) + " branches",
          .unit = "nats",
          .noise = "",
          .estimate = estimate.value,
          .interval90 = estimate.interval(kEquivalenceLevel),
          .interval95 = estimate.interval(0.95),
          .p = paired_permutation_test(differences).p,
          .standard_error = estimate.error,
          .degrees_of_freedom = estimate.degrees,
          .n = steps,
          .k_a = count,
          .k_b = count,
          .equal_bits = std::all_of(pairs.begin(), pairs.end(),
                                    [](const BranchPair& pair) { return pair.equal_bits; })};
}

}  // namespace

std::string start_digest(const store::RecordedRun& run) {
  if (run.steps.size() == 0 || !run.steps.steps_known) return "";
  const auto state = run.state_hashes.find(start_step(run));
  if (state == run.state_hashes.end()) return "";
  std::string all;
  for (const auto& row : state->second) all += row.part + "/" + row.name + " " + row.sha256 + "\n";
  return sha256(all).hex();
}

Branches pair_branches(const Runs& a, const Runs& b) {
  Branches found;
  const Runs in_a = usable(a, 'A', found), in_b = usable(b, 'B', found);
  std::set<const store::RecordedRun*> paired;
  for (const auto* one : in_a) {
    for (const auto* other : in_b) {
      if (paired.contains(other)) continue;
      const auto pair = pair_of(*one, *other);
      if (!pair) continue;
      found.pairs.push_back(*pair);
      paired.insert({one, other});
      break;
    }
  }
  for (const auto& [runs, side] : {std::pair{&in_a, 'A'}, std::pair{&in_b, 'B'}})
    for (const auto* run : *runs)
      if (!paired.contains(run))
        found.unpaired.push_back(
            {side, run->run_id, "the other side has no branch from its state on its batches"});
  std::sort(found.pairs.begin(), found.pairs.end(), [](const auto& x, const auto& y) {
    return std::tie(x.from_step, x.start, x.run_a) < std::tie(y.from_step, y.start, y.run_a);
  });
  if (found.pairs.size() >= 2) found.test = test_of(found.pairs);
  return found;
}

Branches find_branches(const store::RecordedRun& a, const store::RecordedRun& b,
                       const std::vector<Candidate>& candidates) {
  Runs in_a, in_b;
  std::vector<UnpairedBranch> others;
  if (is_branch(a)) in_a.push_back(&a);
  if (is_branch(b)) in_b.push_back(&b);
  for (const Candidate& candidate : candidates) {
    if (!is_branch(candidate.run)) continue;
    const Assigned assigned = side_of(candidate, a, b);
    const bool of_a = assigned.side == 'A';
    if (!assigned.side)
      others.push_back({std::nullopt, candidate.run.run_id, assigned.reason});
    else if (!are_repeats(of_a ? a : b, candidate.run))
      others.push_back(
          {assigned.side, candidate.run.run_id, "another model, data or settings than the side's"});
    else
      (of_a ? in_a : in_b).push_back(&candidate.run);
  }
  Branches found = pair_branches(in_a, in_b);
  found.unpaired.insert(found.unpaired.end(), others.begin(), others.end());
  return found;
}

}  // namespace olmo::report
