#include "eval/sequence_queue.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "eval/sequence_forest.h"

namespace olmo::eval {
namespace {

constexpr std::int64_t kFirstForestRows = 256;

// Groups that are run together: at most a forest's worth of rows, unless one group alone has more.
// It knows the size of its prefix tree while it grows.
class Chunk {
 public:
  Chunk(std::span<const SequenceGroup> all, bool share) : all_(all), share_(share) {}

  [[nodiscard]] bool empty() const { return groups_.empty(); }
  [[nodiscard]] const std::vector<std::size_t>& groups() const { return groups_; }
  [[nodiscard]] std::span<const QueuedSequence> sequences() const { return sequences_; }

  /// False, and nothing is changed, if the group would make it larger than `limit`. An empty chunk
  /// takes any group.
  bool try_add(std::size_t group, std::int64_t limit) {
    const auto slot = static_cast<std::uint32_t>(groups_.size());
    const std::int64_t rows = rows_;
    const auto& sequences = all_[group].sequences;
    for (std::uint32_t i = 0; i < sequences.size(); ++i) insert({&sequences[i], slot, i});
    // Sequences of which only the last token differs take no rows; the targets are bounded as well.
    const auto count = static_cast<std::int64_t>(sequences_.size());
    if (!empty() && std::max(rows_, count) > limit) {
      std::erase_if(sequences_, [slot](const auto& queued) { return queued.slot == slot; });
      rows_ = rows;
      return false;
    }
    groups_.push_back(group);
    return true;
  }

  /// Calls `run(sequences, shared)` for forests of at most `limit` rows, or one sequence.
  template <typename Run>
  void for_each_forest(std::int64_t limit, const Run& run) const {
    std::vector<std::int64_t> shared;
    std::size_t first = 0;
    std::int64_t rows = 0;
    const std::span<const QueuedSequence> all = sequences_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto length = static_cast<std::int64_t>(all[i].inputs().size());
      std::int64_t prefix = i == first ? 0 : shared_prefix(all[i - 1], all[i]);
      if (i != first && rows + length - prefix > limit) {
        run(all.subspan(first, i - first), shared, rows);
        shared.clear();
        first = i;
        rows = prefix = 0;
      }
      shared.push_back(prefix);
      rows += length - prefix;
    }
    if (!all.empty()) run(all.subspan(first), shared, rows);
  }

 private:
  [[nodiscard]] std::int64_t shared_prefix(const QueuedSequence& a, const QueuedSequence& b) const {
    return share_ ? common_prefix(a.inputs(), b.inputs()) : 0;
  }

  // A sequence adds to the tree what neither of its neighbours has: no other can share more.
  void insert(const QueuedSequence& queued) {
    auto at = sequences_.end();
    std::int64_t prefix = 0;
    if (share_) {
      at = std::upper_bound(
          sequences_.begin(), sequences_.end(), queued,
          [](const auto& a, const auto& b) { return tokens_less(a.inputs(), b.inputs()); });
      if (at != sequences_.begin()) prefix = shared_prefix(*(at - 1), queued);
      if (at != sequences_.end()) prefix = std::max(prefix, shared_prefix(queued, *at));
    }
    rows_ += static_cast<std::int64_t>(queued.inputs().size()) - prefix;
    sequences_.insert(at, queued);
  }

  std::span<const SequenceGroup> all_;
  bool share_;
  std::vector<std::size_t> groups_;
  std::vector<QueuedSequence> sequences_;  // sorted by their inputs, if shared
  std::int64_t rows_ = 0;
};

void check_groups(std::span<const SequenceGroup> groups, const QueueOptions& options) {
  OLMO_CHECK(options.forest_rows >= 1);
  for (const auto& group : groups) {
    for (const auto& sequence : group.sequences) {
      OLMO_CHECK(sequence.scored >= 1);
      OLMO_CHECK(sequence.tokens.size() > static_cast<std::size_t>(sequence.scored));
    }
  }
}

// By `order`, then such that groups which begin alike are neighbours.
std::vector<std::size_t> run_order(std::span<const SequenceGroup> groups) {
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto first_tokens = [&](std::size_t group) {
    const auto& sequences = groups[group].sequences;
    return sequences.empty() ? std::span<const std::uint32_t>() : sequences.front().tokens;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (groups[a].order != groups[b].order) return groups[a].order < groups[b].order;
    return tokens_less(first_tokens(a), first_tokens(b));
  });
  return order;
}

template <typename Wanted, typename Run>
void for_each_chunk(std::span<const SequenceGroup> groups, const QueueOptions& options,
                    const Wanted& wanted, const Run& run) {
  Chunk chunk(groups, options.share_prefixes);
  std::int64_t limit = std::min(kFirstForestRows, options.forest_rows);
  for (const std::size_t group : run_order(groups)) {
    if (!wanted(group) || chunk.try_add(group, limit)) continue;
    run(chunk);
    chunk = Chunk(groups, options.share_prefixes);
    limit = std::min(2 * limit, options.forest_rows);
    if (wanted(group)) chunk.try_add(group, limit);
  }
  if (!chunk.empty()) run(chunk);
}

}  // namespace

QueueCost plan_cost(std::span<const SequenceGroup> groups, const QueueOptions& options) {
  check_groups(groups, options);
  QueueCost cost;
  for (const auto& group : groups) {
    for (const auto& sequence : group.sequences)
      cost.tokens += static_cast<std::int64_t>(sequence.tokens.size()) - 1;
  }
  const auto count = [&](auto, const auto&, std::int64_t rows) { cost.rows += rows; };
  for_each_chunk(
      groups, options, [](std::size_t) { return true; },
      [&](const Chunk& chunk) { chunk.for_each_forest(options.forest_rows, count); });
  return cost;
}

void score_groups(std::span<const SequenceGroup> groups, const ScoreTokens& model,
                  const QueueOptions& options, const QueueCallbacks& callbacks) {
  check_groups(groups, options);
  std::int64_t rows_done = 0;
  std::vector<TokenScore> token_scores;
  std::vector<std::vector<SequenceScore>> scores;  // per group of the chunk

  const auto run_forest = [&](std::span<const QueuedSequence> sequences,
                              const std::vector<std::int64_t>& shared, std::int64_t rows) {
    const SequenceForest built = build_forest(sequences, shared);
    token_scores.assign(built.forest.targets.size(), {});
    model(built.forest, token_scores);
    auto target = built.target_of.begin();
    for (const auto& queued : sequences) {
      SequenceScore& score = scores[queued.slot][queued.index];
      for (std::int64_t i = 0; i < queued.sequence->scored; ++i) {
        const TokenScore& token = token_scores[*target++];
        score.log_prob += static_cast<double>(token.log_prob);
        score.logit_sum += static_cast<double>(token.logit);
        score.is_greedy = score.is_greedy && token.is_likeliest;
      }
    }
    rows_done += rows;
    if (callbacks.on_progress) callbacks.on_progress(rows_done);
  };
  const auto wanted = [&](std::size_t group) {
    return !callbacks.is_wanted || callbacks.is_wanted(group);
  };
  for_each_chunk(groups, options, wanted, [&](const Chunk& chunk) {
    scores.clear();
    for (const std::size_t group : chunk.groups())
      scores.emplace_back(groups[group].sequences.size());
    chunk.for_each_forest(options.forest_rows, run_forest);
    for (std::size_t slot = 0; slot < scores.size(); ++slot)
      callbacks.on_group(chunk.groups()[slot], scores[slot]);
  });
}

}  // namespace olmo::eval
