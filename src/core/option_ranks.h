#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/evaluation_rows.h"

namespace olmo {

/// Fills `rank` and `margin` of an instance's rows by their scores. The first maximum wins, as in
/// NumPy's and PyTorch's argmax; a single option has margin 0.
void rank_by(std::span<const double> scores, std::span<OptionRow> rows);

/// OptionRow::request_hash.
std::string request_hash(std::string_view context, std::string_view continuation);

}  // namespace olmo
