#pragma once

#include <functional>

#include "cli/rank_options.h"
#include "dist/world.h"

namespace olmo::cli::compute {

/// Does `work` as the rank that this process is, or starts the ranks that --nproc asks for and
/// waits for them. Returns the exit code. Throws Error(kUsage) for a launch that cannot be joined.
int on_ranks(const RankOptions& options, const std::function<int(dist::World&)>& work);

}  // namespace olmo::cli::compute
