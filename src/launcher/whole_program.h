// olmo-harness is two programs: the one that a user starts, which has no LibTorch and so is there
// in milliseconds and on machines without it, and the whole one, which that becomes where a command
// computes.
#pragma once

namespace olmo::launcher {

/// Becomes the whole program, with the words of this process: it keeps process, signals and
/// terminal, and gives the exit code. In a package LibTorch is looked for first; a build has it
/// where it was linked. Throws Error(kUsage) if there is none, Error(kFailure) if the program
/// cannot be started.
[[noreturn]] void become_whole_program();

}  // namespace olmo::launcher
