#include "eval/sequence_queue.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/error.h"

namespace olmo::eval {
namespace {

using Tokens = std::span<const std::uint32_t>;

/// A sequence under way, and where its score goes.
struct QueuedSequence {
  const ScoredSequence* sequence = nullptr;
  std::uint32_t slot = 0;   ///< of its group among those of the chunk
  std::uint32_t index = 0;  ///< within its group

  /// What the model runs over.
  [[nodiscard]] std::span<const std::uint32_t> inputs() const {
    return {sequence->tokens.data(), sequence->tokens.size() - 1};
  }
};

/// Sequences as one pass of the model.
struct SequenceForest {
  TokenForest forest;
  std::vector<std::size_t> target_of;  ///< per scored token, sequence by sequence, ascending
};

/// Number of tokens that both begin with.
std::int64_t common_prefix(Tokens a, Tokens b) {
  constexpr std::size_t kBlock = 16;  // few-shot headers are long: compared a cache line at a time
  const std::size_t size = std::min(a.size(), b.size());
  std::size_t n = 0;
  while (n + kBlock <= size && std::memcmp(&a[n], &b[n], kBlock * sizeof(a[n])) == 0) n += kBlock;
  while (n < size && a[n] == b[n]) ++n;
  return static_cast<std::int64_t>(n);
}

/// Whether `a` comes first: token by token, a prefix before what continues it.
bool tokens_less(Tokens a, Tokens b) {
  const auto shared = static_cast<std::size_t>(common_prefix(a, b));
  if (shared == a.size() || shared == b.size()) return a.size() < b.size();
  return a[shared] < b[shared];
}

// A prediction that a sequence asks for; sequences may ask for the same.
struct Use {
  std::int64_t row;
  std::uint32_t label;
  std::size_t index;

  friend auto operator<=>(const Use&, const Use&) = default;
};

// Rows in the order in which the tree is walked, and where a row does not follow the one before it.
struct Rows {
  std::vector<std::int64_t> parent;  // row, or -1: a sequence starts here
  std::vector<std::uint8_t> starts;  // a segment
  std::vector<std::int64_t> path;    // row of each input of the sequence at hand
  std::vector<Use> uses;
};

void append_rows(const QueuedSequence& queued, std::int64_t shared, Rows& rows,
                 TokenForest& forest) {
  const Tokens inputs = queued.inputs();
  rows.path.resize(static_cast<std::size_t>(shared));
  for (auto i = static_cast<std::size_t>(shared); i < inputs.size(); ++i) {
    const auto row = std::ssize(forest.ids);
    const std::int64_t parent = i == 0 ? -1 : rows.path[i - 1];
    const bool branches = parent != row - 1;
    // The parent's segment ends with it, so its first child starts one as well.
    if (branches && parent >= 0) rows.starts[static_cast<std::size_t>(parent + 1)] = 1;
    rows.starts.push_back(branches || row == 0);
    rows.parent.push_back(parent);
    rows.path.push_back(row);
    forest.ids.push_back(inputs[i]);
  }
}

void append_uses(const ScoredSequence& sequence, Rows& rows) {
  const auto& tokens = sequence.tokens;
  for (auto i = tokens.size() - static_cast<std::size_t>(sequence.scored); i < tokens.size(); ++i)
    rows.uses.push_back({rows.path[i - 1], tokens[i], rows.uses.size()});
}

std::vector<TokenSegment> make_segments(const Rows& rows) {
  std::vector<TokenSegment> segments;
  std::vector<std::int64_t> segment_of(rows.parent.size());
  for (std::size_t row = 0; row < rows.parent.size(); ++row) {
    if (rows.starts[row]) {
      TokenSegment segment{.begin = static_cast<std::int64_t>(row)};
      if (rows.parent[row] >= 0) {
        segment.parent = segment_of[static_cast<std::size_t>(rows.parent[row])];
        const auto& parent = segments[static_cast<std::size_t>(segment.parent)];
        segment.position = parent.position + parent.length;
      }
      segments.push_back(segment);
    }
    ++segments.back().length;
    segment_of[row] = std::ssize(segments) - 1;
  }
  return segments;
}

/// The forest of `sequences`, of which each has its first `shared` inputs in common with the one
/// before it (`shared[0]` is 0). Sharing asks for sequences in the order of tokens_less, and their
/// common_prefix; zeros stand for none.
SequenceForest build_forest(std::span<const QueuedSequence> sequences,
                            std::span<const std::int64_t> shared) {
  OLMO_CHECK(sequences.size() == shared.size());
  SequenceForest result;
  Rows rows;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    append_rows(sequences[i], shared[i], rows, result.forest);
    append_uses(*sequences[i].sequence, rows);
  }
  result.forest.segments = make_segments(rows);

  std::ranges::sort(rows.uses);
  result.target_of.resize(rows.uses.size());
  auto& targets = result.forest.targets;
  for (const Use& use : rows.uses) {
    if (targets.empty() || targets.back().row != use.row || targets.back().label != use.label)
      targets.push_back({use.row, use.label});
    result.target_of[use.index] = targets.size() - 1;
  }
  return result;
}

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
    const auto count = std::ssize(sequences_);
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
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (groups[a].order != groups[b].order) return groups[a].order < groups[b].order;
    return tokens_less(first_tokens(a), first_tokens(b));
  });
  return order;
}

int processes_of(const QueueOptions& options) {
  return options.team == nullptr ? 1 : options.team->size;
}

template <typename Wanted, typename Run>
void for_each_chunk(std::span<const SequenceGroup> groups, const QueueOptions& options,
                    const Wanted& wanted, const Run& run) {
  Chunk chunk(groups, options.share_prefixes);
  const std::int64_t most = options.forest_rows * processes_of(options);
  std::int64_t limit = std::min(kFirstForestRows * processes_of(options), most);
  for (const std::size_t group : run_order(groups)) {
    if (!wanted(group) || chunk.try_add(group, limit)) continue;
    run(chunk);
    chunk = Chunk(groups, options.share_prefixes);
    limit = std::min(2 * limit, most);
    if (wanted(group)) chunk.try_add(group, limit);
  }
  if (!chunk.empty()) run(chunk);
}

/// Scores chunks in passes through the model, as many at the same time as there are processes.
class ChunkScorer {
 public:
  ChunkScorer(std::span<const SequenceGroup> groups, const ScoreTokens& model,
              const QueueOptions& options, const QueueCallbacks& callbacks)
      : groups_(groups), model_(model), options_(options), callbacks_(callbacks) {}

  void score(const Chunk& chunk) {
    scores_.clear();
    for (const std::size_t group : chunk.groups())
      scores_.emplace_back(groups_[group].sequences.size());
    chunk.for_each_forest(options_.forest_rows,
                          [&](std::span<const QueuedSequence> sequences,
                              const std::vector<std::int64_t>& shared, std::int64_t rows) {
                            add_pass({sequences, rows, build_forest(sequences, shared), {}});
                          });
    run_passes();
    for (std::size_t slot = 0; slot < scores_.size(); ++slot)
      callbacks_.on_group(chunk.groups()[slot], scores_[slot]);
  }

 private:
  struct Pass {
    std::span<const QueuedSequence> sequences;
    std::int64_t rows;
    SequenceForest built;
    std::vector<TokenScore> scores;
  };

  void add_pass(Pass pass) {
    pass.scores.assign(pass.built.forest.targets.size(), {});
    passes_.push_back(std::move(pass));
    if (std::ssize(passes_) == processes_of(options_)) run_passes();
  }

  void run_passes() {
    if (passes_.empty()) return;
    if (options_.team == nullptr)
      model_(passes_.front().built.forest, passes_.front().scores);
    else
      share_passes(*options_.team);
    for (const Pass& pass : passes_) take_scores(pass);
    passes_.clear();
  }

  void share_passes(const ScoringTeam& team) {
    std::vector<std::span<TokenScore>> of_all;
    for (Pass& pass : passes_) of_all.emplace_back(pass.scores);
    const auto mine = static_cast<std::size_t>(team.number);
    team.share(
        [&] {
          if (mine >= passes_.size()) return model_({}, {});
          model_(passes_[mine].built.forest, passes_[mine].scores);
        },
        of_all);
  }

  void take_scores(const Pass& pass) {
    auto target = pass.built.target_of.begin();
    for (const auto& queued : pass.sequences) {
      SequenceScore& score = scores_[queued.slot][queued.index];
      for (std::int64_t i = 0; i < queued.sequence->scored; ++i) {
        const TokenScore& token = pass.scores[*target++];
        score.log_prob += static_cast<double>(token.log_prob);
        score.logit_sum += static_cast<double>(token.logit);
        score.is_greedy = score.is_greedy && token.is_likeliest;
      }
    }
    rows_done_ += pass.rows;
    if (callbacks_.on_progress) callbacks_.on_progress(rows_done_);
  }

  std::span<const SequenceGroup> groups_;
  const ScoreTokens& model_;
  const QueueOptions& options_;
  const QueueCallbacks& callbacks_;
  std::vector<Pass> passes_;                        // run at the same time, one by each process
  std::vector<std::vector<SequenceScore>> scores_;  // per group of the chunk
  std::int64_t rows_done_ = 0;
};

}  // namespace

std::int64_t rows_to_run(std::span<const SequenceGroup> groups, const QueueOptions& options) {
  check_groups(groups, options);
  std::int64_t total = 0;
  const auto count = [&](auto, const auto&, std::int64_t rows) { total += rows; };
  for_each_chunk(
      groups, options, [](std::size_t) { return true; },
      [&](const Chunk& chunk) { chunk.for_each_forest(options.forest_rows, count); });
  return total;
}

void score_groups(std::span<const SequenceGroup> groups, const ScoreTokens& model,
                  const QueueOptions& options, const QueueCallbacks& callbacks) {
  check_groups(groups, options);
  ChunkScorer scorer(groups, model, options, callbacks);
  const auto wanted = [&](std::size_t group) {
    return !callbacks.is_wanted || callbacks.is_wanted(group);
  };
  for_each_chunk(groups, options, wanted, [&](const Chunk& chunk) { scorer.score(chunk); });
}

}  // namespace olmo::eval
