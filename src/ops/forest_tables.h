#pragma once

#include <vector>

#include "ops/attention.h"
#include "ops/kernels/forest_tables.h"

namespace olmo::ops {

/// What a GPU needs to know of a forest.
struct ForestTables {
  std::vector<ForestGpuTile> tiles;    ///< in the order of the plan's
  std::vector<std::int32_t> key_rows;  ///< tiles that share a path share its rows
};

ForestTables forest_tables(const ForestPlan& plan);

}  // namespace olmo::ops
