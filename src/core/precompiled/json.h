// The JSON library, precompiled for the files that include it (src/compile_units.cmake).
#pragma once

#include <nlohmann/json.hpp>

// json.cpp has the one copy of the class that the others link to; each would compile its own.
extern template class nlohmann::basic_json<>;
