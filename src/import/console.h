// What trainers print while they train, as rows of a log.
#pragma once

#include <optional>
#include <string_view>

#include "import/log.h"

namespace olmo::import {

/// Whose console a line with the numbers of a step is from; nothing for any other line.
std::optional<LogFormat> console_of(std::string_view line);

/// The steps and evaluations that were printed; all other lines are passed over. Lines may have
/// colours, and anything before what is read, as torchrun and srun put ranks and times there.
void read_torchtitan(std::string_view text, const OnLogRow& on_row);
void read_olmo(std::string_view text, const OnLogRow& on_row);
void read_megatron(std::string_view text, const OnLogRow& on_row);

}  // namespace olmo::import
