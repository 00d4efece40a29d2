#include "cli/compute/rank_options.h"

#include <algorithm>
#include <optional>

#include "core/environment_variable.h"
#include "core/error.h"
#include "core/process/terminal.h"
#include "dist/launch.h"
#include "dist/nproc.h"

namespace olmo::cli::compute {
namespace {

using std::chrono::seconds;

dist::RankLimits limits_of(const RankOptions& options) {
  dist::RankLimits limits;
  limits.join = seconds(options.join_timeout);
  limits.watch.dead = seconds(options.rank_timeout);
  limits.watch.hung = seconds(options.hang_timeout);
  limits.watch.beat = std::min(limits.watch.beat, limits.watch.dead / 5);
  return limits;
}

/// Refuses --nproc in a process that is a rank already.
void require_no_launcher(const RankOptions& options) {
  const dist::Launch launch = dist::read_launch(environment_entry);
  if (launch.size == 1) return;
  throw Error(ErrorKind::kUsage, "--nproc " + std::to_string(options.nproc) + ": " +
                                     dist::described(launch) +
                                     ": leave out --nproc, or start one process");
}

}  // namespace

int on_ranks(const RankOptions& options, const std::function<int(dist::World&)>& work) {
  const dist::RankLimits limits = limits_of(options);
  // A rank that --nproc has started has the same words as who started it.
  const bool is_child = environment_entry(dist::kNprocVariable) != nullptr;
  if (options.nproc == 1 && !is_child) return dist::run_world({}, limits, work);
  if (options.nproc > 1 && !is_child) {
    require_no_launcher(options);
    // Others find out within the limit; then rank 0 has its record to close.
    return dist::start_ranks(static_cast<int>(options.nproc), limits.watch.dead,
                             2 * limits.watch.dead + seconds(10));
  }
  const auto rendezvous =
      options.rendezvous.empty() ? std::nullopt : std::optional(options.rendezvous);
  const dist::Launch launch = dist::read_launch(environment_entry, rendezvous);
  if (!launch.note.empty()) log_line("note: " + launch.note);
  return dist::run_world(launch, limits, work);
}

}  // namespace olmo::cli::compute
