// The evaluations of one run or of several: /evaluations?run=KEY, or /run/KEY/evaluations.
#pragma once

#include "serve/catalog.h"
#include "serve/routes.h"

namespace olmo::serve {

/// Scores over the checkpoints, and a table with a line for each task of each evaluation.
void add_evaluations(Routes& routes, Catalog& catalog);

}  // namespace olmo::serve
