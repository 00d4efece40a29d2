// The page of live curves, of one run or of many: /curves?run=KEY&run=KEY, or /run/KEY/curves.
#pragma once

#include <chrono>

#include "serve/catalog.h"
#include "serve/routes.h"

namespace olmo::serve {

/// The page, its script, and what that asks: /api/curves and /api/curves/new. The page shows those
/// runs that were begun to be read within `patience`, and the first in any case; its script brings
/// the others.
void add_curves(Routes& routes, Catalog& catalog,
                std::chrono::milliseconds patience = std::chrono::milliseconds(600));

}  // namespace olmo::serve
