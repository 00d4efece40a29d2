// `olmo-harness runs export`: a table of a run as text, or runs as the files of other tools.
#include <iostream>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/given_path.h"
#include "cli/interface/usage.h"
#include "cli/named_record.h"
#include "cli/run_row.h"
#include "cli/screen/table.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/files/output_file.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "exports/tools.h"
#include "monitor/run_view.h"
#include "store/runs/run_db.h"

namespace olmo::cli {
namespace {

namespace fs = std::filesystem;
using store::OpenMode;
using store::RunDb;

struct RunsExportArguments {
  std::vector<std::string> places;
  std::string table = "steps";
  std::string format = "jsonl";
  std::string out;
  std::string tool;
  std::string project = "olmo-harness";
  bool all_attempts = false;
};

RowWriter make_writer(const std::string& format) {
  if (format == "jsonl") {
    return [](std::ostream& out, const auto& names, const auto& values, bool) {
      out << json_text(row_json(names, values)) << "\n";
    };
  }
  if (format == "csv") return write_csv_row;
  OLMO_CHECK(format == "md");
  return write_markdown_row;
}

void export_table(const RunsExportArguments& options) {
  const auto write = make_writer(options.format);
  const auto name = store::parse_run_name(options.places.front());
  const RunDb db = RunDb::open(name.database, OpenMode::kReadOnly);
  const std::string run = find_named_run(db, name);
  std::optional<OutputFile> file;
  if (!options.out.empty()) file.emplace(options.out);
  bool first = true;
  const auto send = [&](const auto& names, const auto& values) {
    std::ostringstream row;
    write(row, names, values, first);
    first = false;
    if (file) {
      file->append(row.str());
    } else {
      std::cout << row.str();
    }
  };
  if (options.table == "steps") warn_of_record(db.records(), run);
  store::for_each_row(db, options.table, run, options.all_attempts, send);
  if (file) file->publish();
  if (!options.out.empty()) log_line("wrote " + options.out);
}

/// What to type to see the export.
std::string advice(const std::string& tool, const fs::path& folder,
                   const std::vector<fs::path>& written) {
  const std::string place = shell_quoted(folder.string());
  if (tool == "tensorboard") return "tensorboard --logdir " + place;
  if (tool == "wandb") {
    std::vector<std::string> words = {"wandb", "sync"};
    for (const auto& path : written) words.push_back(path.string());
    return shell_line(words);
  }
  if (tool == "trackio")
    return "TRACKIO_DIR=" + place + " trackio show --project " +
           shell_quoted(written.back().stem().string());
  return "MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri " + place;
}

void export_runs(const RunsExportArguments& options) {
  if (options.places.size() < 2)
    throw Error(ErrorKind::kUsage, "runs export --to " + options.tool +
                                       ": needs the runs, and then the folder to write to, got " +
                                       "only '" + options.places.front() + "'");
  const fs::path folder = options.places.back();
  if (folder.empty())
    throw Error(ErrorKind::kUsage,
                "runs export --to " + options.tool + ": the folder to write to has no name");
  std::vector<fs::path> written;
  for (std::size_t i = 0; i + 1 < options.places.size(); ++i) {
    require_run("runs export", options.places[i]);
    const auto name = store::parse_run_name(options.places[i]);
    RunDb db = RunDb::open(name.database, OpenMode::kReadOnly);
    const std::string run = find_named_run(db, name);
    warn_of_record(db.records(), run);
    exports::Source source{
        .facts = exports::read_facts(db, run),
        .points = [&](const exports::OnPoint& visit) { exports::for_each_point(db, run, visit); }};
    const auto now = monitor::judge(db.records(), run, source.facts.status, false);
    if (now.activity == monitor::Activity::kGone) source.facts.status = exports::kKilled;
    const auto exported = exports::export_run(source, options.tool, folder, options.project);
    written.push_back(exported.path);
    std::cout << "wrote " << safe_line(exported.path.string()) << ": "
              << counted(exported.numbers, "number") << " of " << counted(exported.steps, "step")
              << "\n";
  }
  std::cout << "look at it: " << advice(options.tool, folder, written) << "\n";
}

void export_as_told(const RunsExportArguments& options) {
  if (!options.tool.empty()) return export_runs(options);
  if (options.places.size() > 1)
    throw Error(ErrorKind::kUsage, "runs export: a table is of one run, got " +
                                       joined(options.places, " and ") +
                                       " (--to TOOL takes several, and a folder)");
  require_run("runs export", options.places.front());
  export_table(options);
}

}  // namespace

void add_runs_export(const Command& runs) {
  const Command exporting =
      runs.add("export", "Write a table of a run as text, or runs as files of TensorBoard, W&B, …");
  auto& options = exporting.options<RunsExportArguments>();
  exporting
      .option("RUN", options.places,
              kRunForms + std::string(". With --to several, and then the folder to write to"))
      .required();
  const auto tool = exporting
                        .option("--to TOOL", options.tool,
                                "Write files of " + listed(exports::tools()) +
                                    "; an earlier export of the same run is replaced")
                        .one_of(exports::tools());
  exporting
      .option("--project NAME", options.project,
              "With --to wandb, trackio or mlflow: the project or experiment")
      .with_default()
      .needs(tool);
  exporting.option("--table", options.table, listed(store::tables_of_runs()))
      .one_of(store::tables_of_runs())
      .with_default()
      .excludes(tool);
  exporting.option("--format", options.format, "jsonl, csv or md")
      .one_of({"jsonl", "csv", "md"})
      .with_default()
      .excludes(tool);
  exporting.option("--out FILE", options.out, "File to write (default: stdout)").excludes(tool);
  exporting
      .flag("--all-attempts", options.all_attempts,
            "With steps: also those that a later attempt replaced")
      .excludes(tool);
  exporting.footer(
      "Example: olmo-harness runs export run.db --table steps --format csv --out steps.csv\n"
      "Example: olmo-harness runs export runs/a runs/b --to tensorboard curves");
  exporting.action([&options] { export_as_told(options); });
}

}  // namespace olmo::cli
