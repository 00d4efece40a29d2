#include "cli/cli.h"

#include <iostream>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "core/build_info.h"
#include "core/error.h"

namespace olmo::cli {
namespace {

const std::vector<AddCommand>& commands() {
  static const std::vector<AddCommand> kCommands = {
      add_train, add_eval, add_report, add_audit, add_runs, add_data, add_checkpoint, add_doctor,
  };
  return kCommands;
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app(
      "Train OLMo deterministically, keep every fact of the run, and prove that two runs are the "
      "same.",
      "olmo-harness");
  app.set_version_flag(
      "--version", "olmo-harness " + build_info().version + " (" + build_info().git_revision + ")");
  app.require_subcommand(1);
  app.footer(
      "Each command has its own --help. Exit codes: 0 done, 1 a failure of ours, 2 usage or "
      "config, "
      "3 bad input,\n4 damaged checkpoint or database, 5 a check found a difference, 6 the loss is "
      "not finite, 75 stopped on\nrequest (resume it), 130 interrupted.\n"
      "Example: olmo-harness train configs/train/quickstart.json data.paths=[corpus.npy] --run-dir "
      "runs/a");
  int exit_code = 0;
  for (const AddCommand add : commands()) add(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, std::cout, std::cerr);
    return code == 0 ? 0 : static_cast<int>(ErrorKind::kUsage);
  }
  return exit_code;
}

}  // namespace olmo::cli
