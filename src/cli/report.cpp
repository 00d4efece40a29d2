// `olmo-harness report parity|declare|run`: what two runs, or one, show (`plan`: report_plan.cpp).
#include <cstdlib>
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/eval_records.h"
#include "cli/named_record.h"
#include "cli/next_steps.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/files/output_file.h"
#include "core/process/activity.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "report/comparability/assumptions.h"
#include "report/page/pages.h"
#include "store/runs/declarations.h"
#include "store/runs/run_db.h"

namespace olmo::cli {
namespace {

struct ReportArguments {
  std::string a, b;
  std::string kind, margin, by, noise;
  std::vector<std::string> assume;
  std::string data;
  std::string cluster, cluster_a, cluster_b;
  std::string out, markdown, csv;
  std::optional<std::int64_t> tokens_per_step;
  bool skip_evaluations = false;
  bool allow_negligible = false;
  bool json = false;
};

void save(const std::string& path, const std::string& text) {
  if (!path.empty()) write_file_atomically(path, text);
}

/// Files and stdout of either report.
void deliver(const ReportArguments& options, const std::string& html, const std::string& markdown,
             const nlohmann::ordered_json& json) {
  save(options.out, html);
  save(options.markdown, markdown);
  std::cout << (options.json ? json_text(json, 2) + "\n" : markdown);
  for (const auto& file : {options.out, options.markdown, options.csv})
    if (!file.empty()) log_line("wrote " + file);
}

/// Appends the options that were given.
std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::pair<std::string, std::string>>& given) {
  for (const auto& [option, value] : given)
    if (!value.empty()) words.insert(words.end(), {option, value});
  return words;
}

/// The command that makes the report again, without where its output goes: equal reports have equal
/// bytes.
std::string command_of(std::vector<std::string> words) {
  words.insert(words.begin(), "olmo-harness");
  return shell_line(words);
}

std::vector<std::string> words_of(const ReportArguments& options,
                                  const report::ParityOptions& settings) {
  auto words =
      with({"report", "parity", options.a, options.b}, {{"--kind", options.kind},
                                                        {"--margin", options.margin},
                                                        {"--noise", options.noise},
                                                        {"--cluster-a", settings.cluster_a},
                                                        {"--cluster-b", settings.cluster_b}});
  if (options.skip_evaluations) words.emplace_back("--skip-evaluations");
  if (options.tokens_per_step)
    words.insert(words.end(), {"--tokens-per-step", std::to_string(*options.tokens_per_step)});
  for (const auto& fact : options.assume) words.insert(words.end(), {"--assume", fact});
  return words;
}

int parity(const ReportArguments& options) {
  report::ParityOptions settings;
  if (!options.kind.empty()) settings.kind = report::kind_named(options.kind);
  settings.skip_evaluations = options.skip_evaluations;
  settings.margins = report::parse_margins(options.margin);
  settings.assume = report::parse_assumptions(options.assume);
  settings.noise = options.noise;
  settings.tokens_per_step = options.tokens_per_step;
  settings.cluster_a = options.cluster_a.empty() ? options.cluster : options.cluster_a;
  settings.cluster_b = options.cluster_b.empty() ? options.cluster : options.cluster_b;
  const auto words = words_of(options, settings);
  settings.command = command_of(words);
  settings.version = build_info().version;
  report::ParityReport found = during("reading and comparing both runs", [&] {
    return report::compare(options.a, options.b, settings);
  });
  if (!options.out.empty()) add_flip_texts(found, options.data);
  save(options.csv, options.csv.empty() ? "" : report::parity_csv(found));
  const bool passes =
      options.allow_negligible && found.verdict == report::Verdict::kDifferentNegligible;
  const int code = passes ? 0 : report::exit_code(found.verdict);
  auto json = options.json ? report::parity_json(found) : nlohmann::ordered_json();
  if (options.json) json["exit_code"] = code;
  deliver(options, options.out.empty() ? "" : report::parity_html(found),
          report::parity_markdown(found), json);
  if (options.out.empty() && !options.json)
    say_next({{with(words, {{"--data", options.data}, {"--out", "parity.html"}}),
               "the same as a page, with figures"}});
  return code;
}

void declare(const ReportArguments& options) {
  if (report::parse_margins(options.margin).empty())
    throw Error(ErrorKind::kUsage, "report declare: --margin must name at least one margin");
  const char* user = std::getenv("USER");
  const std::string who = !options.by.empty() ? options.by : user != nullptr ? user : "unknown";
  const auto name = store::parse_run_name(options.a);
  auto db = store::RunDb::open(name.database, store::OpenMode::kReadWrite);
  const std::string run = find_named_run(db, name);
  const auto made = store::declare(db.records(), run, who, options.margin);
  if (options.json) {
    const nlohmann::ordered_json json = {
        {"run_id", run},   {"declaration", made.declaration}, {"margins", made.margins},
        {"who", made.who}, {"created_utc", made.created_utc}, {"sha256", made.sha256}};
    std::cout << json_text(json, 2) << "\n";
    return;
  }
  std::cout << "run " << run << ": " << made.margins << ", declared by " << made.who << " at "
            << made.created_utc << " (" << made.sha256.substr(0, 16) << ")\n";
}

/// The page of a damaged record is made, too; the exit code then says that it is one.
int one_run(const ReportArguments& options) {
  report::RunReport found = during("reading the record of " + options.a,
                                   [&] { return report::report_run(options.a, options.cluster); });
  const auto words = with({"report", "run", options.a}, {{"--cluster", options.cluster}});
  found.command = command_of(words);
  found.version = build_info().version;
  deliver(options, options.out.empty() ? "" : report::run_html(found), report::run_markdown(found),
          options.json ? report::run_json(found) : nlohmann::ordered_json());
  if (options.out.empty() && !options.json)
    say_next({{with(words, {{"--out", "run.html"}}), "the same as a page, with curves"}});
  return report::damage_of(found).empty() ? 0 : static_cast<int>(ErrorKind::kDamaged);
}

void add_outputs(const Command& command, ReportArguments& options) {
  command.option("--out FILE", options.out, "FILE.html: one page that needs no other file");
  command.option("--markdown FILE", options.markdown, "FILE.md");
  command.json(options.json);
  command.option("--cluster FILE", options.cluster,
                 "configs/clusters/FILE.json: peak, PUE, carbon intensity and price");
}

}  // namespace

void add_report(const Command& program, const char* group) {
  const Command report =
      program.add("report", "Compare two runs, with a verdict, or show one run on a page", group);
  report.footer("Example: olmo-harness report parity lumi.db mosaic.db --out parity.html");
  auto& options = report.options<ReportArguments>();

  const Command comparing =
      report.add("parity", "Compare two runs: one verdict, and the evidence for it");
  comparing.run(options.a, "RUN_A", "FILE.db, FILE.db:ID (run or evaluation) or a run folder")
      .required();
  comparing.run(options.b, "RUN_B", "The other one; differences are B minus A").required();
  comparing
      .option("--kind", options.kind,
              "checkpoint (same weights), trajectory (same start and data) or outcome (independent "
              "trainings), where the records do not tell")
      .one_of({"checkpoint", "trajectory", "outcome"});
  comparing.option("--margin KEY=VALUE,…", options.margin,
                   "Largest difference that is negligible, where no side declared one: loss=NATS, "
                   "macro=POINTS, task=POINTS, bpb=BITS");
  comparing
      .option("--assume KEY=VALUE", options.assume,
              "State a fact that the report names as not known; VALUE `equal`: the same on both "
              "sides. May be given several times")
      .one_at_a_time();
  comparing.number("--tokens-per-step", options.tokens_per_step, kPositive,
                   "Of a log that tells steps only: instances a step times their length");
  comparing.option("--noise FILE", options.noise,
                   "FILE.json: published deviations between runs, where there are no repeats");
  add_outputs(comparing, options);
  comparing.option("--csv FILE", options.csv, "FILE.csv: one line a comparison");
  comparing.option("--cluster-a FILE", options.cluster_a, "Cluster file of A alone");
  comparing.option("--cluster-b FILE", options.cluster_b, "Cluster file of B alone");
  comparing.option("--data DIR", options.data,
                   "The folder that `data fetch` filled: the page shows what was asked in flips");
  comparing.flag("--skip-evaluations", options.skip_evaluations,
                 "Compare the trainings only, not their evaluations");
  comparing.flag("--allow-negligible", options.allow_negligible, "Exit 0 for DIFFERENT_NEGLIGIBLE");
  comparing.footer(
      "Exit codes: 0 IDENTICAL or EQUIVALENT, 10 CONSISTENT, 11 INCONCLUSIVE, 20 DIFFERENT, 21 "
      "DIFFERENT_NEGLIGIBLE, 30 NOT_COMPARABLE, 40 INVALID_DATA.\n"
      "Example: olmo-harness report parity lumi.db mosaic.db --out parity.html");
  comparing.action([&options] { return parity(options); });

  const Command declaring = report.add(
      "declare", "Write into a run's record what differences count as none, before comparing it");
  declaring.run(options.a);
  declaring
      .option("--margin KEY=VALUE,…", options.margin,
              "loss=NATS, macro=POINTS, task=POINTS, bpb=BITS")
      .required();
  declaring.option("--by NAME", options.by, "Who declares; else the user of this process");
  declaring.json(options.json);
  declaring.footer("Example: olmo-harness report declare lumi.db --margin loss=0.01,macro=0.5");
  declaring.action([&options] { declare(options); });

  add_report_plan(report);

  const Command one =
      report.add("run", "Make a page of one run: curves, scores, audits, speed, energy");
  one.run(options.a);
  add_outputs(one, options);
  one.footer("Example: olmo-harness report run runs/quickstart-1 --out run.html");
  one.action([&options] { return one_run(options); });
}

}  // namespace olmo::cli
