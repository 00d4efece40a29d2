// The subcommands: each lives in its own file of this room and is listed in the table of cli.cpp.
#pragma once

namespace CLI {
class App;
}

namespace olmo::cli {

/// Adds a subcommand to `app`; its callback does the work and may set `exit_code` (0 otherwise).
using AddCommand = void (*)(CLI::App& app, int& exit_code);

void add_runs(CLI::App& app, int& exit_code);
void add_train(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_audit(CLI::App& app, int& exit_code);
void add_data(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_checkpoint(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);

}  // namespace olmo::cli
