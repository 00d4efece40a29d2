#include "evaluation/rank_team.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "dist/agreement.h"
#include "dist/exchange.h"
#include "dist/together.h"

namespace olmo::evaluation {
namespace {

/// A score as it travels: no byte of it is left to chance.
struct SentScore {
  float log_prob = 0;
  float logit = 0;
  std::uint32_t is_likeliest = 0;
};

void exchange(dist::Communicator& ranks, std::span<const std::span<TokenScore>> scores) {
  std::size_t longest = 0;
  for (const auto& of_forest : scores) longest = std::max(longest, of_forest.size());
  std::vector<SentScore> mine(longest);
  const auto number = static_cast<std::size_t>(ranks.rank());
  if (number < scores.size()) {
    std::ranges::transform(scores[number], mine.begin(), [](const TokenScore& score) {
      return SentScore{score.log_prob, score.logit, score.is_likeliest ? 1U : 0U};
    });
  }
  const auto all = dist::all_gather_values(ranks, std::span<const SentScore>(mine));
  for (std::size_t forest = 0; forest < scores.size(); ++forest) {
    for (std::size_t i = 0; i < scores[forest].size(); ++i) {
      const SentScore& score = all[forest * longest + i];
      scores[forest][i] = {score.log_prob, score.logit, score.is_likeliest != 0};
    }
  }
}

void read_alike(dist::Communicator& ranks, const std::function<Digest()>& read,
                const std::function<std::string()>& what) {
  Digest mine;
  dist::together(ranks, [&] { mine = read(); });
  const auto all = dist::all_gather_value(ranks, mine);
  const auto other =
      std::ranges::find_if(all, [&](const Digest& digest) { return digest != all.front(); });
  if (other == all.end()) return;
  const auto rank = static_cast<int>(other - all.begin());
  throw dist::AgreedError(ErrorKind::kInput, "rank " + std::to_string(rank) +
                                                 " has read something else than rank 0: " +
                                                 dist::broadcast_text(ranks, what(), rank) +
                                                 "; expected the same files on all ranks");
}

}  // namespace

eval::ScoringTeam team_of(dist::Communicator& ranks, RankPasses passes,
                          std::function<void()> check) {
  const auto checked = [check = std::move(check)] {
    if (check) check();
  };
  eval::ScoringTeam team;
  team.read_alike = [&ranks](const auto& read, const auto& what) {
    evaluation::read_alike(ranks, read, what);
  };
  team.size = ranks.size();
  team.number = ranks.rank();
  team.share = [&ranks, passes, checked](const auto& work, auto scores) {
    dist::together(ranks, [&] {
      checked();
      if (passes == RankPasses::kApart) work();
    });
    // What fails in such a pass fails amid its gathers: the ranks' watch ends the others.
    if (passes == RankPasses::kInStep) work();
    exchange(ranks, scores);
  };
  return team;
}

std::set<std::int64_t> numbers_of_first(dist::Communicator& ranks,
                                        const std::set<std::int64_t>& mine) {
  std::string text;
  if (ranks.rank() == 0) {
    for (const std::int64_t number : mine) text += std::to_string(number) + "\n";
  }
  text = dist::broadcast_text(ranks, text, 0);
  std::set<std::int64_t> numbers;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    numbers.insert(std::stoll(text.substr(at)));
  return numbers;
}

}  // namespace olmo::evaluation
