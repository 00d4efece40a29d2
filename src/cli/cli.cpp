#include <iostream>
#include <vector>

#include "cli/commands.h"
#include "cli/rank_options.h"
#include "core/error.h"
#include "core/process.h"

namespace olmo::cli {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 done, 1 a failure of ours, 2 usage or config, 3 bad input, 4 damaged checkpoint "
    "or database, 5 a check found a difference, 6 the loss is not finite, 75 stopped on request "
    "(resume it), 130 interrupted. report parity has its own: its help lists them.\n"
    "Example: olmo-harness train configs/train/quickstart.json data.paths=[corpus.npy] --run-dir "
    "runs/a";

}  // namespace

int run(int argc, char** argv) {
  const Program program(
      "olmo-harness",
      "Trains OLMo with the same bits on every machine, evaluates checkpoints, and tells whether "
      "two runs are the same training.",
      "olmo-harness " + build_info().version + " (" + build_info().git_revision + ")");
  const Command commands = program.command();
  add_doctor(commands, "Begin");
  add_data(commands, "Begin");
  add_train(commands, "Train");
  add_audit(commands, "Train");
  add_eval(commands, "Evaluate");
  add_runs(commands, "Look and compare");
  add_report(commands, "Look and compare");
  add_checkpoint(commands, "Look and compare");
  commands.footer(kFooter);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    std::cout << program.overview();
    return static_cast<int>(ErrorKind::kUsage);
  }
  if (const auto text = config_reference(words)) {
    std::cout << *text;
    return 0;
  }
  if (words[0] != "train" && words[0] != "eval") note_several_processes(words[0]);
  return program.run(words);
}

}  // namespace olmo::cli
