#include "core/error.h"
#include "core/host_tensor.h"
#include "model/olmo.h"

namespace olmo::model {
namespace {

at::Tensor to_tensor(const std::vector<std::int64_t>& values) {
  const at::Tensor tensor = new_tensor({std::ssize(values)}, at::kLong);
  std::ranges::copy(values, mutable_host_span<std::int64_t>(tensor).begin());
  return tensor;
}

at::Tensor positions_of(const TokenForest& forest) {
  std::vector<std::int64_t> positions;
  positions.reserve(forest.ids.size());
  for (const auto& segment : forest.segments) {
    for (std::int64_t i = 0; i < segment.length; ++i) positions.push_back(segment.position + i);
  }
  return to_tensor(positions);
}

/// The rows that have targets, and the targets with rows counted among those.
struct Targets {
  std::vector<std::int64_t> rows;
  std::vector<TokenTarget> targets;
};

Targets distinct_rows(const TokenForest& forest) {
  Targets distinct;
  const auto rows = static_cast<std::int64_t>(forest.ids.size());
  for (const auto& [row, label] : forest.targets) {
    OLMO_CHECK(row >= (distinct.rows.empty() ? 0 : distinct.rows.back()) && row < rows);
    if (distinct.rows.empty() || row != distinct.rows.back()) distinct.rows.push_back(row);
    distinct.targets.push_back({static_cast<std::int64_t>(distinct.rows.size()) - 1, label});
  }
  return distinct;
}

}  // namespace

void Olmo::score(const TokenForest& forest, std::span<TokenScore> scores) {
  OLMO_CHECK(scores.size() == forest.targets.size());
  const auto shape = shape_of(1, static_cast<std::int64_t>(forest.ids.size()));
  auto plan = ops::plan_forest(policy_, shape, forest.segments);
  const auto [rows, targets] = distinct_rows(forest);
  if (targets.empty()) return;
  ForestRows forest_rows{std::move(plan), positions_of(forest), to_tensor(rows)};
  const auto longest = host_value<std::int64_t>(forest_rows.positions_M.max()) + 1;
  const BlockContext pass = context(shape, longest, &forest_rows);
  const at::Tensor final_RD = run_forward(pass, to_tensor(forest.ids), /*training=*/false, {});
  ops::head_scores(pass.compute, head_, final_RD, weights_.head, targets, scores);
}

}  // namespace olmo::model
