#include "report/cost/world.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/text/text.h"

namespace olmo::report {
namespace {

std::vector<store::RankRecord> ranks_of(const store::RecordedRun& run, std::int64_t attempt) {
  std::vector<store::RankRecord> ranks;
  std::ranges::copy_if(run.ranks, std::back_inserter(ranks),
                       [&](const auto& rank) { return rank.attempt == attempt; });
  return ranks;
}

std::vector<PhaseTime> phases_of(const store::RecordedRun& run) {
  std::map<std::string, PhaseTime> sums;
  std::map<std::string, double> steps;
  for (const auto& row : run.phases) {
    const auto count = static_cast<double>(row.last_step - row.first_step + 1);
    if (count < 1) continue;  // damaged
    PhaseTime& sum = sums[row.phase];
    sum.mean += count * row.mean;
    sum.least += count * row.least;
    sum.most += count * row.most;
    steps[row.phase] += count;
  }
  std::vector<PhaseTime> phases;
  for (const auto phase : store::kPhaseNames) {
    const std::string name(phase);
    const auto found = sums.find(name);
    if (found == sums.end()) continue;
    const double count = steps.at(name);
    phases.push_back({name, found->second.mean / count, found->second.least / count,
                      found->second.most / count});
  }
  return phases;
}

double own_seconds(const store::RankRecord& rank) {
  return rank.data_seconds + rank.compute_seconds;
}

std::optional<SlowestRank> slowest_of(const std::vector<store::RankRecord>& ranks) {
  if (ranks.size() < 2) return std::nullopt;
  const auto found = std::ranges::max_element(
      ranks, [](const auto& a, const auto& b) { return a.slowest_steps < b.slowest_steps; });
  if (found->slowest_steps <= 0) return std::nullopt;
  double sum = 0;
  for (const auto& rank : ranks) sum += own_seconds(rank);
  SlowestRank slowest{.rank = found->rank,
                      .host = found->host,
                      .steps = found->slowest_steps,
                      .of_steps = found->steps};
  if (sum > 0) slowest.longer = own_seconds(*found) / (sum / static_cast<double>(ranks.size())) - 1;
  return slowest;
}

}  // namespace

std::string describe_attempt(const store::AttemptRecord& attempt,
                             const std::vector<store::RankRecord>& ranks) {
  if (!attempt.world_size) return {};
  std::string text = counted(*attempt.world_size, "rank");
  std::set<std::string> hosts;
  for (const auto& rank : ranks) hosts.insert(rank.host);
  if (!hosts.empty()) text += " on " + counted(static_cast<std::int64_t>(hosts.size()), "host");
  if (*attempt.world_size == 1) return text;
  for (const auto& word : {attempt.strategy, attempt.launch})
    if (!word.empty()) text += ", " + word;
  return text;
}

std::string to_text(const SlowestRank& slowest) {
  return "rank " + std::to_string(slowest.rank) + " on " + slowest.host + ", in " +
         std::to_string(slowest.steps) + " of " + std::to_string(slowest.of_steps) +
         " steps; its own work takes " + formatted("%.1f", 100 * slowest.longer) +
         " % longer than the mean";
}

World world_of(const store::RecordedRun& run) {
  World world;
  for (const auto& attempt : run.attempts) {
    const auto text = describe_attempt(attempt, ranks_of(run, attempt.attempt));
    if (!text.empty() && std::ranges::find(world.attempts, text) == world.attempts.end())
      world.attempts.push_back(text);
  }
  world.phases = phases_of(run);
  if (run.attempts.empty()) return world;
  world.ranks = ranks_of(run, run.attempts.back().attempt);
  world.slowest = slowest_of(world.ranks);
  std::int64_t bytes = 0;
  for (const auto& rank : world.ranks) bytes += rank.gathered_bytes + rank.exchanged_bytes;
  if (!world.ranks.empty() && world.ranks.front().steps > 0)
    world.bytes_of_step = bytes / world.ranks.front().steps;
  return world;
}

}  // namespace olmo::report
