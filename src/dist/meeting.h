// Where no rank goes on before all have come.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "dist/store.h"

namespace olmo::dist {

/// Returns when all `size` ranks have called it with stores of the same values, once with each
/// prefix. Rank 0 looks for them and tells the others, so that of a thousand ranks one alone asks
/// for a thousand keys. Asks `check` now and then, which may throw. When the limit has passed:
/// returns the ranks that have not come.
std::vector<int> meet(Store& store, int rank, int size, std::chrono::milliseconds limit,
                      const std::function<void()>& check = {});

}  // namespace olmo::dist
