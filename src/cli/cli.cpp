#include "cli/cli.h"

#include <iostream>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/usage.h"
#include "core/build_info.h"
#include "core/error.h"

namespace olmo::cli {
namespace {

struct Group {
  const char* title;
  std::vector<AddCommand> commands;
};

/// In the order in which a person meets them.
const std::vector<Group>& groups() {
  static const std::vector<Group> kGroups = {
      {"Begin", {add_doctor, add_data}},
      {"Train", {add_train, add_audit}},
      {"Evaluate", {add_eval}},
      {"Look and compare", {add_runs, add_report, add_checkpoint}},
  };
  return kGroups;
}

constexpr char kFooter[] =
    "Exit codes: 0 done, 1 a failure of ours, 2 usage or config, 3 bad input, 4 damaged checkpoint "
    "or database, 5 a check found a difference, 6 the loss is not finite, 75 stopped on request "
    "(resume it), 130 interrupted. report parity has its own: its help lists them.\n"
    "Example: olmo-harness train configs/train/quickstart.json data.paths=[corpus.npy] --run-dir "
    "runs/a";

}  // namespace

int run(int argc, char** argv) {
  CLI::App app(
      "Trains OLMo with the same bits on every machine, evaluates checkpoints, and tells whether "
      "two runs are the same training.",
      "olmo-harness");
  app.set_version_flag(
      "--version", "olmo-harness " + build_info().version + " (" + build_info().git_revision + ")",
      "Show the version");
  app.set_help_flag("-h,--help", "Show this help");
  app.formatter(help_formatter());  // the commands take it over
  app.require_subcommand(1);
  app.footer(kFooter);
  int exit_code = 0;
  for (const auto& [title, commands] : groups()) {
    for (const AddCommand add : commands) {
      add(app, exit_code);
      app.get_subcommands([](const CLI::App*) { return true; }).back()->group(title);
    }
  }
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    std::cout << overview(app);
    return static_cast<int>(ErrorKind::kUsage);
  }
  parse_words(app, words);
  return exit_code;
}

}  // namespace olmo::cli
