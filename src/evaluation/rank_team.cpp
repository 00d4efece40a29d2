#include "evaluation/rank_team.h"

#include <algorithm>
#include <vector>

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

}  // namespace

eval::ScoringTeam team_of(dist::Communicator& ranks, std::function<void()> check) {
  return {
      .size = ranks.size(),
      .number = ranks.rank(),
      .share = [&ranks, check = std::move(check)](const std::function<void()>& work,
                                                  std::span<const std::span<TokenScore>> scores) {
        dist::together(ranks, [&] {
          if (check) check();
          work();
        });
        exchange(ranks, scores);
      }};
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
