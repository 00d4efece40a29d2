// The subcommands of `olmo-harness data`.
#pragma once

namespace CLI {
class App;
}

namespace olmo::cli {

void add_data_fetch(CLI::App& data, int& exit_code);
void add_data_corpus(CLI::App& data, int& exit_code);
void add_data_tokenize(CLI::App& data, int& exit_code);
void add_data_inspect(CLI::App& data, int& exit_code);
void add_data_stats(CLI::App& data, int& exit_code);

}  // namespace olmo::cli
