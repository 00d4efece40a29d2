// The subcommands of `checkpoint` that have a file of their own.
#pragma once

namespace CLI {
class App;
}

namespace olmo::cli {

void add_checkpoint_import(CLI::App& checkpoint);
void add_checkpoint_export(CLI::App& checkpoint);

}  // namespace olmo::cli
