#pragma once

#include <string>

#include "core/json.h"

namespace olmo {

/// Where this process runs: host, processor, cores, memory, kernel, operating system, devices,
/// relevant environment variables and Slurm ids. What cannot be read is absent, never a guess.
Json environment();

/// A word as a shell reads it back.
std::string shell_quoted(const std::string& word);

/// The words that started this process, quoted where a shell needs it.
std::string command_line();

}  // namespace olmo
