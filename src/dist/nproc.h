// `--nproc N`: the ranks of one machine, as processes that this one starts and looks after.
#pragma once

#include <chrono>
#include <filesystem>

namespace olmo::dist {

/// Launch::how of ranks that start_ranks started.
inline constexpr char kNproc[] = "--nproc";
/// Set in the environment of such a rank.
inline constexpr char kNprocVariable[] = "OLMO_HARNESS_RANK";

/// Starts this program `size` times with its own arguments, as ranks that meet in a private folder,
/// and waits for all. Rank 0 has this process's input and output; what another rank writes appears
/// on stderr with its rank in front. Signals go on to all ranks. A rank that a signal has ended, or
/// that has been stopped for `dead`, has failed; the others learn it also where it has not joined
/// them yet. Once one has ended badly, the others have `patience` to end, and are killed then.
/// Returns the exit code on which the ranks agree: that of rank 0, or of the first that tells one;
/// kStopped if all were killed. Throws Error(kFailure) if they cannot be started. Called before a
/// second thread exists.
int start_ranks(int size, std::chrono::milliseconds dead, std::chrono::milliseconds patience);

/// Removes the folders in `where` in which ranks of such a start met that no process has open any
/// more: where all of them are killed, nobody is left who could.
void remove_abandoned_meetings(const std::filesystem::path& where);

}  // namespace olmo::dist
