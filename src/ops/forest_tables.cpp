#include "ops/forest_tables.h"

#include <limits>

#include "core/error.h"

namespace olmo::ops {
namespace {

std::int32_t narrowed(std::int64_t number) {
  OLMO_CHECK(number >= 0 && number <= std::numeric_limits<std::int32_t>::max());
  return static_cast<std::int32_t>(number);
}

const ForestPiece& piece_at(const ForestPlan& plan, std::int64_t piece) {
  return plan.pieces[static_cast<std::size_t>(piece)];
}

void add_rows(const ForestPiece& piece, std::vector<std::int32_t>& rows) {
  for (std::int64_t i = 0; i < piece.rows; ++i) rows.push_back(narrowed(piece.row + i));
}

void set_queries(const ForestPlan& plan, const ForestTile& from, ForestGpuTile& tile) {
  tile.queries = narrowed(from.queries);
  for (auto run = from.run_begin; run < from.run_end; ++run) {
    const auto& [piece, column] = plan.runs[static_cast<std::size_t>(run)];
    for (std::int64_t i = 0; i < piece_at(plan, piece).rows; ++i) {
      tile.row[column + i] = narrowed(piece_at(plan, piece).row + i);
      tile.run_begin[column + i] = narrowed(column);
    }
  }
}

}  // namespace

ForestTables forest_tables(const ForestPlan& plan) {
  ForestTables tables;
  std::int64_t path_begin = -1, path_end = -1;
  std::int32_t first_key = 0;
  for (const auto& from : plan.tiles) {
    if (from.path_begin != path_begin) {
      path_begin = path_end = from.path_begin;
      first_key = narrowed(static_cast<std::int64_t>(tables.key_rows.size()));
    }
    for (; path_end < from.path_end; ++path_end) {
      const auto piece = plan.path[static_cast<std::size_t>(path_end)];
      add_rows(piece_at(plan, piece), tables.key_rows);
    }
    ForestGpuTile tile{};
    tile.keys = narrowed(from.keys);
    tile.first_key = first_key;
    set_queries(plan, from, tile);
    tables.tiles.push_back(tile);
  }
  return tables;
}

}  // namespace olmo::ops
