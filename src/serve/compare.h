// The configs of several runs side by side: /compare?run=KEY&run=KEY.
#pragma once

#include "serve/catalog.h"
#include "serve/routes.h"

namespace olmo::serve {

void add_compare(Routes& routes, Catalog& catalog);

}  // namespace olmo::serve
