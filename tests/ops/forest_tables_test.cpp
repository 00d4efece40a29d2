#include "ops/forest_tables.h"

#include <random>

#include "core/compute/libtorch.h"
#include "support/catch.h"
#include "support/random_forest.h"

namespace olmo::ops {
namespace {

using Rows = std::vector<std::int64_t>;

/// The rows that each row of the forest sees, according to the tables, in the order of their
/// positions.
std::vector<Rows> seen_rows(const ForestTables& tables, std::int64_t rows) {
  std::vector<Rows> seen(static_cast<std::size_t>(rows));
  for (const auto& tile : tables.tiles) {
    for (std::int32_t query = 0; query < tile.queries; ++query) {
      Rows& mine = seen.at(static_cast<std::size_t>(tile.row[query]));
      CHECK(mine.empty());  // a row has one place
      for (std::int32_t i = 0; i < tile.keys; ++i)
        mine.push_back(tables.key_rows.at(static_cast<std::size_t>(tile.first_key + i)));
      for (auto i = tile.run_begin[query]; i <= query; ++i) mine.push_back(tile.row[i]);
    }
  }
  return seen;
}

TEST_CASE("the tables of a forest give each row the rows of its path up to itself", "[ops]") {
  std::mt19937 random(7);
  for (int turn = 0; turn < 40; ++turn) {
    const auto segments = test::random_segments(1 + static_cast<std::size_t>(turn) % 9, random);
    const auto rows = test::rows_of(segments);
    const auto plan =
        plan_forest(resolve_policy("portable", "auto", 1), {1, rows, 2, 1, 8}, segments);
    const auto seen = seen_rows(forest_tables(plan), rows);
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const Rows path = test::path_rows(segments, static_cast<std::int64_t>(s));
      for (std::int64_t i = 0; i < segments[s].length; ++i) {
        const auto end = path.begin() + static_cast<std::ptrdiff_t>(segments[s].position + i + 1);
        INFO("turn " << turn << ", segment " << s << ", row " << i);
        CHECK(seen[static_cast<std::size_t>(segments[s].begin + i)] == Rows(path.begin(), end));
      }
    }
  }
}

TEST_CASE("tiles that share a path share the rows of its keys", "[ops]") {
  // 100 rows with 300 continuations of one row each, which take five tiles.
  std::vector<TokenSegment> segments = {{-1, 0, 100, 0}};
  for (std::int64_t i = 0; i < 300; ++i) segments.push_back({0, 100 + i, 1, 100});
  const auto plan = plan_forest(resolve_policy("portable", "auto", 1), {1, 400, 1, 1, 8}, segments);
  const auto tables = forest_tables(plan);
  CHECK(tables.tiles.size() == 2 + 5);
  CHECK(tables.key_rows.size() == 64 + 100);
}

}  // namespace
}  // namespace olmo::ops
