// `olmo-harness train`: from a config to a trained model, or to the plan of it.
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/compute/compute.h"
#include "cli/interface/help.h"
#include "config/key_table.h"
#include "core/files/json.h"
#include "core/process/process.h"
#include "dist/launch.h"

namespace olmo::cli {
namespace {

/// The key that the words ask for: `train --help KEY`, `help train KEY` or `help KEY`.
std::optional<std::string> key_asked_for(const std::vector<std::string>& words) {
  const bool of_train =
      words.size() == 3 && words[0] == "train" && (words[1] == "--help" || words[1] == "-h");
  if (of_train || (words.size() == 3 && words[0] == "help" && words[1] == "train")) return words[2];
  if (words.size() != 2 || words[0] != "help" || words[1] == "data") return std::nullopt;
  const bool is_key =
      words[1].find_first_of("._") != std::string::npos || config::find_key(words[1]) != nullptr;
  return is_key ? std::optional(words[1]) : std::nullopt;  // else a command
}

}  // namespace

std::optional<std::string> config_reference(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "train" && words[1] == "--print-schema")
    return json_text(config::config_schema(), 2) + "\n";
  const auto key = key_asked_for(words);
  return key ? std::optional(fitted(config::key_help(*key))) : std::nullopt;
}

void add_train(const Command& program, const char* group) {
  const Command train = program.add(
      "train", "Train a model from a config, deterministically and on the record", group);
  auto& options = train.options<TrainOptions>();
  train.config(options.config, "A config: JSON, or one of OLMo's own YAML files").required();
  train.overrides(options.overrides);
  train.option("--run-dir DIR", options.run_dir,
               "Checkpoints and run.db go here (default: save_folder)");
  train.option("--db FILE", options.database,
               "The run database (default: RUN_DIR/run.db); several runs may share one");
  train.option("--resume latest|DIR", options.resume,
               "`latest`, or a checkpoint directory: go on from there, bit for bit");
  train.option("--branch-from CHECKPOINT", options.branch_from,
               "Begin a run of its own at this checkpoint (as load_path), with stop_after=N for N "
               "steps: report parity pairs the branches of two machines");
  train.flag("--dry-run", options.dry_run,
             "Print the plan (sizes, memory, disk, time, schedule, config) and every problem "
             "that would keep the run from starting; exit 2 if there is one; do not train");
  add_rank_options(train, options.ranks);
  train.number("--world-size", options.world_size, {1, dist::kMostRanks},
               "With --dry-run: plan for N ranks instead: memory and traffic of a rank, and with "
               "--cluster the time of a step and whether it fits");
  train.option("--cluster FILE", options.cluster,
               "configs/clusters/FILE.json: memory, peak and links of the devices to plan for");
  train.json(options.json);
  train.flag("--print-schema", options.print_schema,
             "Print the JSON schema of configs, for editors (configs/schema.json); do not train");
  train.footer(
      "train --help KEY explains a key of the config, such as model.n_kv_heads, or a group of "
      "keys, "
      "such as optimizer.\n"
      "SIGTERM, SIGHUP, SIGUSR1 and the like save and exit 75, Ctrl-C saves and exits 130; a loss "
      "that is not finite exits 6.\n"
      "Examples:\n"
      "  olmo-harness train configs/train/quickstart.json data.paths=[corpus.npy] "
      "max_duration=100 --run-dir runs/a\n"
      "  olmo-harness train OLMo-1B.yaml data.paths=[corpus.npy] --run-dir runs/1b "
      "--dry-run");
  train.action([&options] {
    options.command_line = command_line();
    return compute::train(options);
  });
}

}  // namespace olmo::cli
