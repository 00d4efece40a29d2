// The options of commands that run on several ranks, and how they become one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/interface/command.h"
#include "dist/world.h"

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

/// Does `work` as the rank that this process is, or starts the ranks that --nproc asks for and
/// waits for them. Returns the exit code. Throws Error(kUsage) for a launch that cannot be joined.
int on_ranks(const RankOptions& options, const std::function<int(dist::World&)>& work);

/// For commands that do all in each process: if a launcher has started several, the first says so.
void note_several_processes(const std::string& command);

}  // namespace olmo::cli
