#pragma once

namespace olmo::cli {

/// Parses argv, runs the subcommand and returns its exit code. Throws Error for what ends the
/// command.
int run(int argc, char** argv);

}  // namespace olmo::cli
