#pragma once

#include <string>
#include <string_view>

namespace olmo {

/// A cell as RFC 4180 wants it: quoted where it holds a comma, a quote or a line end.
std::string csv_cell(std::string_view text);

}  // namespace olmo
