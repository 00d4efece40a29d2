// The subcommands of `olmo-harness runs` that have their own file.
#pragma once

namespace CLI {
class App;
}

namespace olmo::cli {

/// `runs import FILE --db FILE.db`: other people's logs and instances.
void add_runs_import(CLI::App& runs, int& exit_code);

}  // namespace olmo::cli
