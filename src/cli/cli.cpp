#include <iostream>
#include <vector>

#include "cli/commands.h"
#include "cli/compute/compute.h"
#include "cli/rank_options.h"
#include "cli/surroundings.h"
#include "core/error.h"
#include "core/process/process.h"

namespace olmo::cli {
namespace {

std::string footer() {
  return "Exit codes: " + exit_codes_text() +
         ". report parity has its own: its help lists them.\n"
         "Example: olmo-harness train configs/train/quickstart.json data.paths=[corpus.npy] "
         "--run-dir runs/a";
}

}  // namespace

int run(int argc, char** argv) {
  const Program program(
      "olmo-harness",
      "Trains OLMo with the same bits on every machine, evaluates checkpoints, and tells whether "
      "two runs are the same training.",
      version_line());
  const Command commands = program.command();
  add_doctor(commands, "Begin");
  add_data(commands, "Begin");
  add_train(commands, "Train");
  add_audit(commands, "Train");
  add_eval(commands, "Evaluate");
  add_runs(commands, "Look and compare");
  add_serve(commands, "Look and compare");
  add_report(commands, "Look and compare");
  add_checkpoint(commands, "Look and compare");
  const auto facts = [&program] { return program.facts(); };
  add_completion(commands, "This program", facts);
  add_man(commands, "This program", facts);
  commands.footer(footer());
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    std::cout << program.overview();
    return static_cast<int>(ErrorKind::kUsage);
  }
  for (const auto& text : {version_reference(words), config_reference(words)}) {
    if (!text) continue;
    std::cout << *text;
    return 0;
  }
  if (words[0] != "train" && words[0] != "eval" && !compute::is_whole())
    note_several_processes(words[0]);
  return program.run(words);
}

}  // namespace olmo::cli
