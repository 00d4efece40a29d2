#include "cli/rank_options.h"

#include "core/environment_variable.h"
#include "core/error.h"
#include "core/process/terminal.h"
#include "dist/launch.h"

namespace olmo::cli {
namespace {

constexpr Range kSeconds = {1, 7 * 24 * 3600};
constexpr Range kRanks = {1, 4096};

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

void note_several_processes(const std::string& command) {
  try {
    const dist::Launch launch = dist::read_launch(environment_entry, "file:unused");
    if (launch.size == 1 || launch.rank != 0) return;
    log_line("note: " + dist::described(launch) + "; " + command +
             " shares nothing out: each process does all of it");
  } catch (const Error&) {  // no launch that anybody has to join
  }
}

}  // namespace olmo::cli
