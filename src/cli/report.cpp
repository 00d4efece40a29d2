// `olmo-harness report parity|run`: what two runs, or one, show.
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/given_path.h"
#include "cli/usage.h"
#include "core/build_info.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"
#include "report/page/parity_page.h"
#include "report/run_report.h"

namespace olmo::cli {
namespace {

struct Options {
  std::string a, b;
  std::string kind;
  std::string cluster, cluster_a, cluster_b;
  std::string out, markdown, csv;
  bool skip_evaluations = false;
  bool allow_negligible = false;
  bool json = false;
};

void save(const std::string& path, const std::string& text) {
  if (!path.empty()) write_file_atomically(path, text);
}

/// Files and stdout of either report.
void deliver(const Options& options, const std::string& html, const std::string& markdown,
             const nlohmann::ordered_json& json) {
  save(options.out, html);
  save(options.markdown, markdown);
  std::cout << (options.json ? json_text(json, 2) + "\n" : markdown);
  for (const auto& file : {options.out, options.markdown, options.csv})
    if (!file.empty()) log_line("wrote " + file);
}

/// The command that makes the report again, without where its output goes: equal reports have equal
/// bytes.
std::string words(const std::vector<std::string>& arguments,
                  const std::vector<std::pair<std::string, std::string>>& given) {
  std::string command = "olmo-harness";
  for (const auto& word : arguments) command += " " + shell_quoted(word);
  for (const auto& [option, value] : given)
    if (!value.empty()) command += " " + option + " " + shell_quoted(value);
  return command;
}

int parity(const Options& options) {
  for (const auto& run : {options.a, options.b}) require_run("report parity", run);
  report::ParityOptions settings;
  if (!options.kind.empty()) settings.kind = report::kind_named(options.kind);
  settings.skip_evaluations = options.skip_evaluations;
  settings.cluster_a = options.cluster_a.empty() ? options.cluster : options.cluster_a;
  settings.cluster_b = options.cluster_b.empty() ? options.cluster : options.cluster_b;
  settings.command =
      words({"report", "parity", options.a, options.b}, {{"--kind", options.kind},
                                                         {"--cluster-a", settings.cluster_a},
                                                         {"--cluster-b", settings.cluster_b}}) +
      (options.skip_evaluations ? " --skip-evaluations" : "");
  settings.version = build_info().version;
  const report::ParityReport found = report::compare(options.a, options.b, settings);
  save(options.csv, options.csv.empty() ? "" : report::parity_csv(found));
  deliver(options, options.out.empty() ? "" : report::parity_html(found),
          report::parity_markdown(found),
          options.json ? report::parity_json(found) : nlohmann::ordered_json());
  const bool passes =
      options.allow_negligible && found.verdict == report::Verdict::kDifferentNegligible;
  return passes ? 0 : static_cast<int>(found.verdict);
}

void one_run(const Options& options) {
  require_run("report run", options.a);
  report::RunReport found = report::report_run(options.a, options.cluster);
  found.command = words({"report", "run", options.a}, {{"--cluster", options.cluster}});
  found.version = build_info().version;
  deliver(options, options.out.empty() ? "" : report::run_html(found), report::run_markdown(found),
          options.json ? report::run_json(found) : nlohmann::ordered_json());
}

void add_outputs(CLI::App& command, Options& options) {
  command.add_option("--out", options.out, "FILE.html: one page that needs no other file");
  command.add_option("--markdown", options.markdown, "FILE.md");
  command.add_flag("--json", options.json, "One JSON object on stdout");
  command.add_option("--cluster", options.cluster,
                     "configs/clusters/FILE.json: peak, PUE, carbon intensity and price");
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("report", "Are two runs the same training? What cost one?");
  command->require_subcommand(1);

  CLI::App* parity_command =
      command->add_subcommand("parity", "One verdict on two runs, and the evidence");
  parity_command
      ->add_option("RUN_A", options->a, "FILE.db, FILE.db:ID (run or evaluation) or run directory")
      ->required();
  parity_command->add_option("RUN_B", options->b, "The other one; differences are B minus A")
      ->required();
  parity_command
      ->add_option(
          "--kind", options->kind,
          "checkpoint (same weights), trajectory (same start and data) or outcome (independent "
          "trainings), where the records do not tell")
      ->check(one_of({"checkpoint", "trajectory", "outcome"}));
  add_outputs(*parity_command, *options);
  parity_command->add_option("--csv", options->csv, "FILE.csv: one line a comparison");
  parity_command->add_option("--cluster-a", options->cluster_a, "Cluster file of A alone");
  parity_command->add_option("--cluster-b", options->cluster_b, "Cluster file of B alone");
  parity_command->add_flag("--skip-evaluations", options->skip_evaluations,
                           "Compare the training alone");
  parity_command->add_flag("--allow-negligible", options->allow_negligible,
                           "Exit 0 for DIFFERENT_NEGLIGIBLE");
  parity_command->footer(
      "Exit codes: 0 EQUIVALENT, 10 CONSISTENT, 11 INCONCLUSIVE, 20 DIFFERENT, 21 "
      "DIFFERENT_NEGLIGIBLE,\n30 NOT_COMPARABLE, 40 INVALID_DATA.\n"
      "Example: olmo-harness report parity lumi.db mosaic.db --out parity.html");
  parity_command->callback([options, &exit_code] { exit_code = parity(*options); });

  CLI::App* run_command = command->add_subcommand("run", "The page of one run");
  run_command->add_option("RUN", options->a, "FILE.db, FILE.db:RUN_ID or run directory")
      ->required();
  add_outputs(*run_command, *options);
  run_command->footer("Example: olmo-harness report run runs/quickstart-1 --out run.html");
  run_command->callback([options] { one_run(*options); });
}

}  // namespace olmo::cli
