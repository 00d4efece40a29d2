#pragma once

#include <string>
#include <vector>

#include "core/json.h"

namespace olmo::train {

/// One sentence for each leaf in which two configs differ: "`optimizer.learning_rate` was 0.001, is
/// 0.002".
std::vector<std::string> differences(const Json& before, const Json& now);

}  // namespace olmo::train
