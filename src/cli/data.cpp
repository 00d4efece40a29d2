#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/data_commands.h"

namespace olmo::cli {

void add_data(CLI::App& app, int& exit_code) {
  CLI::App* data =
      app.add_subcommand("data", "Text to token files, and what a training step saw of them");
  data->require_subcommand(1);
  data->footer(
      "Example, from nothing to what a step will see:\n"
      "  olmo-harness data fetch\n"
      "  olmo-harness data corpus --output corpus.jsonl.gz\n"
      "  olmo-harness data tokenize corpus.jsonl.gz --tokenizer TOKENIZER.json --output "
      "corpus.npy\n"
      "  olmo-harness data inspect configs/train/quickstart.json data.paths=[corpus.npy] --step 1");
  for (const AddCommand add :
       {add_data_fetch, add_data_corpus, add_data_tokenize, add_data_inspect, add_data_stats})
    add(*data, exit_code);
}

}  // namespace olmo::cli
