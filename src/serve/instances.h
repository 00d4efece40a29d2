// The instances of a task as an evaluation scored them: a list that can be searched, one instance
// with its prompt and continuations, and what another evaluation chose instead.
//   /instances?run=KEY&evaluation=ID&task=NAME[&with_run=KEY&with=ID]
//   /instance?… the same &doc=NUMBER
#pragma once

#include "serve/catalog.h"
#include "serve/routes.h"

namespace olmo::serve {

void add_instances(Routes& routes, Catalog& catalog);

}  // namespace olmo::serve
