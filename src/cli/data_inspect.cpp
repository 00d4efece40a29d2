#include <string>

#include "cli/commands.h"
#include "cli/compute/compute.h"
#include "cli/given_path.h"

namespace olmo::cli {

void add_data_inspect(const Command& data) {
  const Command command =
      data.add("inspect", "Show what a training step saw: its instances, documents and text");
  auto& arguments = command.options<InspectOptions>();
  command
      .option(
          "INPUT", arguments.input,
          std::string("A run (") + kRunForms + "), a config (.json, .yaml, .yml), or a token file")
      .required();
  command.option("MORE", arguments.more,
                 "For a run or a config: key.path=value sets a key. For a token file: more token "
                 "files, in the order of the config");
  command.number("--step", arguments.step, kPositive, "Training step, from 1").required();
  command.number("--sequence-length", arguments.sequence_length, kSizes,
                 "For token files: `max_sequence_length` of the run (default: 2048)");
  command.number("--global-batch-size", arguments.global_batch_size, kSizes,
                 "For token files: `global_train_batch_size` of the run (default: 1)");
  command.number("--seed", arguments.seed, {0},
                 "For token files: `data.seed` of the run, else its `seed` (default: 0)");
  command.flag("--no-shuffle", arguments.no_shuffle,
               "For token files: do not shuffle, take instances in the order of the files");
  command
      .option("--dtype", arguments.dtype,
              "For token files: uint16 or uint32 (default: as the sidecar says, else uint16)")
      .one_of({"uint16", "uint32"});
  command
      .option(
          "--tokenizer FILE|NAME", arguments.tokenizer,
          "A tokenizer.json, or the name of a fetched one, dolma-v1_5 (default: the one that the "
          "sidecar names, else the config's)")
      .takes(Takes::kTokenizer);
  command.number("--eos-token-id", arguments.eos_token_id, kTokenIds,
                 "Id that ends a document (default: the sidecar's, else the config's, else "
                 "the tokenizer's <|endoftext|>)");
  command.json(arguments.json);
  command.footer(
      "Where a run is given, the batch hash is compared with the one that the run recorded for "
      "that step; exit code 5 if they differ.\n"
      "Examples:\n"
      "  olmo-harness data inspect runs/quickstart --step 40\n"
      "  olmo-harness data inspect configs/train/quickstart.json data.paths=[corpus.npy] --step 3\n"
      "  olmo-harness data inspect corpus.npy --step 3 --sequence-length 256 "
      "--global-batch-size 16 --seed 6198");
  command.action([&arguments] { return compute::inspect_data(arguments); });
}

}  // namespace olmo::cli
