// The options of commands that run on several ranks, and how they become one.
#pragma once

#include <cstdint>
#include <string>

#include "cli/interface/command.h"

namespace olmo::cli {

struct RankOptions {
  std::int64_t nproc = 0;  ///< 0: what the launcher's variables say
  std::string rendezvous;
  // Seconds.
  std::int64_t join_timeout = 300;
  std::int64_t rank_timeout = 30;
  std::int64_t hang_timeout = 1800;
};

/// Declares --nproc, --rendezvous and the limits.
void add_rank_options(const Command& command, RankOptions& options);

/// For commands that do all in each process: if a launcher has started several, the first says so.
void note_several_processes(const std::string& command);

}  // namespace olmo::cli
