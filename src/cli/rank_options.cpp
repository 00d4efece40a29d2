#include "cli/rank_options.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/error.h"
#include "core/process/terminal.h"
#include "dist/launch.h"
#include "dist/nproc.h"

namespace olmo::cli {
namespace {

using std::chrono::seconds;

constexpr Range kSeconds = {1, 7 * 24 * 3600};
constexpr Range kRanks = {1, 4096};

const char* variable(const char* name) { return std::getenv(name); }

dist::RankLimits limits_of(const RankOptions& options) {
  dist::RankLimits limits;
  limits.join = seconds(options.join_timeout);
  limits.watch.dead = seconds(options.rank_timeout);
  limits.watch.hung = seconds(options.hang_timeout);
  limits.watch.beat = std::min(limits.watch.beat, limits.watch.dead / 5);
  return limits;
}

std::string described(const dist::Launch& launch) {
  return launch.how + " has started this process as rank " + std::to_string(launch.rank) + " of " +
         std::to_string(launch.size);
}

/// Refuses --nproc in a process that is a rank already.
void require_no_launcher(const RankOptions& options) {
  const dist::Launch launch = dist::read_launch(variable);
  if (launch.size == 1) return;
  throw Error(ErrorKind::kUsage, "--nproc " + std::to_string(options.nproc) + ": " +
                                     described(launch) +
                                     ": leave out --nproc, or start one process");
}

}  // namespace

void add_rank_options(const Command& command, RankOptions& options) {
  command.number("--nproc", options.nproc, kRanks,
                 "Start N ranks on this machine, which share the work, with the same result; 1: "
                 "run alone, whatever torchrun, srun or mpirun have set");
  command.option("--rendezvous host:port|file:PATH", options.rendezvous,
                 "Where ranks that a launcher has started meet: rank 0's host and a free port, or "
                 "a folder that all see, new for each attempt (default: MASTER_ADDR and "
                 "MASTER_PORT, or Slurm's first node)");
  command
      .number("--rank-timeout", options.rank_timeout, kSeconds,
              "A rank that gives no sign of life for N seconds is dead: all others exit 75")
      .with_default();
  command
      .number("--hang-timeout", options.hang_timeout, kSeconds,
              "A rank that lives, and that others have waited for N seconds for, hangs: all exit "
              "75")
      .with_default();
  command
      .number("--join-timeout", options.join_timeout, kSeconds,
              "How long ranks wait for all to start")
      .with_default();
}

int on_ranks(const RankOptions& options, const std::function<int(dist::World&)>& work) {
  const dist::RankLimits limits = limits_of(options);
  // A rank that --nproc has started has the same words as who started it.
  const bool is_child = variable(dist::kNprocVariable) != nullptr;
  if (options.nproc == 1 && !is_child) return dist::run_world({}, limits, work);
  if (options.nproc > 1 && !is_child) {
    require_no_launcher(options);
    // Others find out within the limit; then rank 0 has its record to close.
    return dist::start_ranks(static_cast<int>(options.nproc), limits.watch.dead,
                             2 * limits.watch.dead + seconds(10));
  }
  const auto rendezvous =
      options.rendezvous.empty() ? std::nullopt : std::optional(options.rendezvous);
  const dist::Launch launch = dist::read_launch(variable, rendezvous);
  if (!launch.note.empty()) log_line("note: " + launch.note);
  return dist::run_world(launch, limits, work);
}

void note_several_processes(const std::string& command) {
  try {
    const dist::Launch launch = dist::read_launch(variable, "file:unused");
    if (launch.size == 1 || launch.rank != 0) return;
    log_line("note: " + described(launch) + "; " + command +
             " shares nothing out: each process does all of it");
  } catch (const Error&) {  // no launch that anybody has to join
  }
}

}  // namespace olmo::cli
