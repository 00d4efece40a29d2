#include "eval/sequence_forest.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace olmo::eval {
namespace {

using Tokens = std::span<const std::uint32_t>;

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
    const auto row = static_cast<std::int64_t>(forest.ids.size());
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
    segment_of[row] = static_cast<std::int64_t>(segments.size()) - 1;
  }
  return segments;
}

}  // namespace

std::int64_t common_prefix(Tokens a, Tokens b) {
  constexpr std::size_t kBlock = 16;  // few-shot headers are long: compared a cache line at a time
  const std::size_t size = std::min(a.size(), b.size());
  std::size_t n = 0;
  while (n + kBlock <= size && std::memcmp(&a[n], &b[n], kBlock * sizeof(a[n])) == 0) n += kBlock;
  while (n < size && a[n] == b[n]) ++n;
  return static_cast<std::int64_t>(n);
}

bool tokens_less(Tokens a, Tokens b) {
  const auto shared = static_cast<std::size_t>(common_prefix(a, b));
  if (shared == a.size() || shared == b.size()) return a.size() < b.size();
  return a[shared] < b[shared];
}

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

  std::sort(rows.uses.begin(), rows.uses.end());
  result.target_of.resize(rows.uses.size());
  auto& targets = result.forest.targets;
  for (const Use& use : rows.uses) {
    if (targets.empty() || targets.back().row != use.row || targets.back().label != use.label)
      targets.push_back({use.row, use.label});
    result.target_of[use.index] = targets.size() - 1;
  }
  return result;
}

}  // namespace olmo::eval
