// What most files parse, precompiled once for all of them. A file still includes what it uses: the
// preset `nopch` builds without this.
#pragma once

#include <nlohmann/json.hpp>

#include "core/tensor.h"

// json.cpp has the one copy of the class that the others link to; each would compile its own.
extern template class nlohmann::basic_json<>;
