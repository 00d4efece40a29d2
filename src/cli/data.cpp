#include "cli/commands.h"

namespace olmo::cli {

void add_data(const Command& program, const char* group) {
  const Command data =
      program.add("data", "Make token files from text, and show what a training step saw", group);
  data.footer(
      "Example, from nothing to what a step will see:\n"
      "  olmo-harness data fetch\n"
      "  olmo-harness data corpus --output corpus.jsonl.gz\n"
      "  olmo-harness data tokenize corpus.jsonl.gz --tokenizer TOKENIZER.json --output "
      "corpus.npy\n"
      "  olmo-harness data inspect configs/train/quickstart.json data.paths=[corpus.npy] --step 1");
  add_data_fetch(data);
  add_data_corpus(data);
  add_data_tokenize(data);
  add_data_inspect(data);
  add_data_stats(data);
}

}  // namespace olmo::cli
