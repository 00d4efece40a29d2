// `olmo-harness runs import`: other people's logs in a database of ours, so that reports can
// compare them.
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/import_output.h"
#include "config/key_table.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/process/activity.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "import/evaluation.h"
#include "import/loss_mean.h"
#include "import/steps.h"
#include "store/runs/run_db.h"

namespace olmo::cli {
namespace {

namespace fs = std::filesystem;
using import::StepLogOptions;  // clang-format takes a line that begins with `import` for a module's
using store::OpenMode;

struct RunsImportArguments {
  std::vector<std::string> files;
  std::vector<std::string> instances;
  std::string database, name, config, metadata, run, weights_digest;
  std::string format = "auto";
  std::string metric = "acc";
  std::string loss_mean, loss_span;
  std::vector<std::string> map, keep, tags;
  std::optional<std::int64_t> tokens_per_step, devices, step;
  bool as_given = false;
  bool dry_run = false;
  bool json = false;
};

void print(const RunsImportArguments& options, const nlohmann::ordered_json& result,
           const std::string& line) {
  if (options.json) {
    std::cout << json_text(result, 2) << "\n";
  } else {
    std::cout << line << "\n";
  }
}

StepLogOptions reading_of(const RunsImportArguments& options) {
  StepLogOptions reading;
  if (options.format != "auto") reading.format = import::parse_log_format(options.format);
  reading.columns = import::parse_column_map(options.map);
  reading.tokens_per_step = options.tokens_per_step;
  reading.devices = options.devices;
  reading.keep = options.keep;
  return reading;
}

/// Rows, first and last step of all files.
nlohmann::ordered_json extent_json(const std::vector<import::StepLog>& logs) {
  std::size_t rows = 0, restarts = 0;
  std::int64_t skipped = 0;
  const store::ImportedStepRecord* first = nullptr;
  const store::ImportedStepRecord* last = nullptr;
  for (const auto& log : logs) {
    rows += log.steps.size();
    restarts += log.restarts.size();
    skipped += log.skipped;
    if (log.steps.empty()) continue;
    if (first == nullptr) first = &log.steps.front();
    last = &log.steps.back();
  }
  return {{"steps", rows},
          {"first_step", or_null(first->step)},
          {"last_step", or_null(last->step)},
          {"first_tokens", or_null(first->tokens)},
          {"last_tokens", or_null(last->tokens)},
          {"rows_without_loss", skipped},
          {"restarts", restarts}};
}

/// "100 steps (1 to 100)", or tokens where no step is known.
std::string extent_text(const nlohmann::ordered_json& extent) {
  const bool steps = !extent["last_step"].is_null();
  const std::string unit = steps ? "step" : "tokens";
  return counted(extent["steps"].get<std::int64_t>(), steps ? "step" : "row") + " (" +
         extent["first_" + unit].dump() + " to " + extent["last_" + unit].dump() +
         (steps ? ")" : " tokens)");
}

/// All that is printed of the logs, but for the run's name in the database.
nlohmann::ordered_json describe(const std::vector<import::StepLog>& logs,
                                const std::vector<std::string>& notes, import::FileOrder order) {
  nlohmann::ordered_json result = {{"format", to_string(logs.front().format)},
                                   {"columns", logs.front().columns}};
  result.update(extent_json(logs));
  result["order"] = to_string(order);
  result["files"] = nlohmann::ordered_json::array();
  for (const auto& log : logs) result["files"].push_back(mapping_json(log));
  result["notes"] = notes;
  return result;
}

/// Files that were taken alike are told once.
void print_mappings(const std::vector<import::StepLog>& logs) {
  std::string last;
  for (const auto& log : logs) {
    const std::string text = mapping_text(log);
    const auto end = text.find('\n') + 1;
    const std::string body = text.substr(end);
    std::cout << text.substr(0, end) << (body == last ? "  as the file before\n" : body);
    last = body;
  }
}

std::string name_of(const RunsImportArguments& options,
                    const std::optional<import::WandbRun>& told) {
  if (!options.name.empty()) return options.name;
  return told && !told->name.empty() ? told->name : fs::path(options.files.front()).stem().string();
}

std::vector<std::string> tags_of(const RunsImportArguments& options,
                                 const std::optional<import::WandbRun>& told) {
  std::vector<std::string> tags = options.tags;
  if (told) tags.insert(tags.end(), told->tags.begin(), told->tags.end());
  return tags;
}

ForeignConfig config_of(const import::WandbRun& told) {
  return foreign_config(told.is_export ? config::with_unstated_keys(told.config) : told.config);
}

/// As stated, else as the log tells.
LossMeaning meaning_of(const import::StepLog& log, const ForeignConfig& config,
                       const RunsImportArguments& options) {
  return {.mean = options.loss_mean.empty() ? import::loss_mean_of(log, config.text)
                                            : parse_loss_mean(options.loss_mean),
          .span = options.loss_span.empty() ? import::loss_span_of(log)
                                            : parse_loss_span(options.loss_span)};
}

std::string meaning_text(const LossMeaning& losses) {
  std::string text;
  if (losses.mean) text += std::string(", losses are means over ") + to_string(*losses.mean);
  if (losses.span == LossSpan::kInterval) text += ", each of all steps since the row before";
  return text;
}

void import_steps(const RunsImportArguments& options) {
  const auto reading = reading_of(options);
  std::vector<import::StepLog> logs;
  for (const auto& file : options.files)
    logs.push_back(during("reading " + file, [&] { return import::read_step_log(file, reading); }));
  const auto order = import::join_step_logs(logs, options.as_given);
  const auto& told = logs.front().run;  // by W&B's record
  const ForeignConfig config =
      options.config.empty() && told ? config_of(*told) : read_foreign_config(options.config);
  const std::string machine =
      options.metadata.empty() && told ? told->machine : read_foreign_machine(options.metadata);
  const LossMeaning losses = meaning_of(logs.front(), config, options);
  const auto notes = import_notes(logs, reading, order, losses);
  auto result = describe(logs, notes, order);
  result[kLossMean] = losses.mean ? nlohmann::ordered_json(to_string(*losses.mean)) : nullptr;
  result[kLossSpan] = losses.span ? nlohmann::ordered_json(to_string(*losses.span)) : nullptr;
  const std::string extent = extent_text(result) + meaning_text(losses);
  if (!options.json) print_mappings(logs);
  for (const auto& note : notes) log_line("note: " + note);
  if (config.translated)
    log_line("note: " + (options.config.empty() ? logs.front().path : options.config) +
             ": the model is kept in OLMo's keys");
  if (options.dry_run) return print(options, result, extent + ", nothing is written (--dry-run)");

  store::RecordDatabase records(options.database, OpenMode::kCreate);
  for (const auto& log : logs) {
    if (const auto before = store::find_imported_run(records, log.sha256))
      log_warning(log.path + ": was imported before, as run " + *before);
  }
  const import::ImportedRun run{.name = name_of(options, told),
                                .config = config.text,
                                .seed = config.seed,
                                .n_parameters = config.n_parameters,
                                .max_steps = config.max_steps,
                                .tags = tags_of(options, told),
                                .command_line = command_line(),
                                .devices = options.devices,
                                .machine = machine,
                                .losses = losses};
  const std::string id = during("writing " + options.database,
                                [&] { return import::write_step_logs(records, logs, run); });
  nlohmann::ordered_json written = {{"run_id", id}, {"database", options.database}};
  written.update(result);
  print(options, written,
        options.database + ":" + id + ": " + extent + " of " + safe_line(run.name));
}

void import_instances(const RunsImportArguments& options) {
  import::ImportedEvaluation evaluation;
  evaluation.metric = import::parse_import_metric(options.metric);
  evaluation.checkpoint = options.name.empty() ? options.instances.front() : options.name;
  evaluation.command_line = command_line();
  evaluation.step = options.step;
  evaluation.weights_digest = options.weights_digest;
  if (const auto& digest = options.weights_digest;
      !digest.empty() &&
      (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos))
    throw Error(ErrorKind::kUsage,
                "--weights-digest must be 64 hexadecimal digits, got '" + digest + "'");
  std::vector<import::InstanceFile> files;
  for (const auto& path : options.instances) {
    files.push_back(during("reading " + path, [&] { return import::read_instance_file(path); }));
    import::rank_instances(files.back(), evaluation.metric);
  }
  import::check_tasks(files);

  auto db = store::RunDb::open(options.database,
                               options.run.empty() ? OpenMode::kCreate : OpenMode::kReadWrite);
  if (!options.run.empty()) evaluation.run_id = db.find_run(options.run);
  if (const auto before = import::find_imported_evaluation(db.records(), files, evaluation.metric))
    log_warning(options.instances.front() + ": was imported before, as evaluation " + *before);
  const std::string id = import::write_instances(db.records(), files, evaluation);
  nlohmann::ordered_json tasks = nlohmann::ordered_json::object();
  for (const auto& file : files) tasks[file.task] = file.instances;
  print(options, {{"evaluation_id", id}, {"database", options.database}, {"instances", tasks}},
        options.database + ":" + id + ": instances of " + counted(std::ssize(files), "task"));
}

void import_files(const RunsImportArguments& options) {
  if (options.files.empty() == options.instances.empty())
    throw Error(ErrorKind::kUsage, "runs import: give either logs or --instances and their files");
  const bool dry_run = options.dry_run && options.instances.empty();
  if (options.database.empty() && !dry_run)
    throw Error(ErrorKind::kUsage,
                "runs import: --db FILE is required, the database to write to (it is made if there "
                "is none); --dry-run shows what a log holds without one");
  if (options.instances.empty()) {
    import_steps(options);
  } else {
    import_instances(options);
  }
}

}  // namespace

void add_runs_import(const Command& runs) {
  const Command command = runs.add(
      "import",
      "Import other trainers' logs as a run, or other evaluators' instances as an evaluation");
  auto& options = command.options<RunsImportArguments>();
  command.option("FILE", options.files,
                 "A log (CSV, JSON lines, columns, a console's, TensorBoard's event file, W&B's "
                 "run-ID.wandb), or the logs of one run's jobs: put in order by their times, "
                 "else by their first steps; a later one supersedes the others from its first "
                 "step on");
  command.flag("--as-given", options.as_given, "Keep the order in which the files are given");
  command.option("--db FILE", options.database, "Database to write to; made if there is none");
  command.option("--name", options.name,
                 "Name of the run, or of what was evaluated (default: W&B's, else the file's)");
  command.option("--format", options.format, import::log_format_names()).with_default();
  command
      .option("--map TARGET=COLUMN", options.map,
              "TARGET=COLUMN, or TARGET=COLUMN*FACTOR for other units, step=COLUMN+1 for steps "
              "that count from 0; targets: step, tokens, "
              "loss (nats), grad_norm, lr, tokens_per_second, tokens_per_second_per_device, "
              "seconds, time (Unix)")
      .one_at_a_time();
  command
      .option("--keep", options.keep,
              "Further columns to keep as metrics, by name or as 'optim/*'; those of "
              "evaluations are kept anyway")
      .one_at_a_time();
  command
      .option("--loss-mean", options.loss_mean,
              "What the losses are means over: labels (T - 1 of an instance of T tokens), or "
              "tokens, as in OLMo from version 0.4 on (default: by names and config)")
      .one_of({to_string(LossMean::kLabels), to_string(LossMean::kTokens)});
  command
      .option("--loss-span", options.loss_span,
              "What the loss of a row is, where not every step is logged: that of its step, or the "
              "mean of the interval since the row before, as in Hugging Face's trainer (default: "
              "by names)")
      .one_of({to_string(LossSpan::kStep), to_string(LossSpan::kInterval)});
  command.number("--tokens-per-step", options.tokens_per_step, {1, std::int64_t{1} << 50},
                 "Tokens of one step, if the log tells only steps or only tokens");
  command.number("--devices", options.devices, kSizes,
                 "Number of devices of the run; a device's throughput times N is the run's");
  command.option("--config FILE", options.config,
                 "Config of the other trainer, kept with the run and compared: JSON or YAML "
                 "(OLMo's own, W&B's config.yaml); default: what W&B's record tells");
  command.option("--metadata FILE", options.metadata,
                 "W&B's wandb-metadata.json: the host, system and GPU of the run");
  command.flag("--dry-run", options.dry_run, "Show which column is taken as what; write nothing");
  command.option("--tag", options.tags, "A tag for the run, beside W&B's").one_at_a_time();
  command.option("--instances FILE", options.instances,
                 "lm-eval's samples_*.jsonl or oe-eval's task-*-predictions.jsonl");
  command
      .option("--metric", options.metric,
              "For --instances: the score that chooses an answer, acc or acc_norm")
      .with_default();
  command.option("--run RUN", options.run, "Run to which the instances belong (a prefix will do)");
  command.number("--step", options.step, {0}, "Step of that run");
  command.option("--weights-digest", options.weights_digest,
                 "SHA-256 of the weights that made the instances");
  command.json(options.json);
  command.footer(
      "Names that OLMo, OLMo-core, torchtitan, Hugging Face, Lightning, NeMo, Megatron and "
      "Composer use are known; "
      "--map tells others. `_step` of W&B comes last. Evaluations' columns become metrics of the "
      "run.\n"
      "Example: olmo-harness runs import wandb.csv --dry-run\n"
      "Example: olmo-harness runs import wandb.csv --db other.db --name 'OLMo on H100' --map "
      "loss=train/CrossEntropyLoss\n"
      "Example: olmo-harness runs import offline-run-*/run-*.wandb --db other.db\n"
      "Example: olmo-harness runs import job1.jsonl job2.jsonl --db other.db --config config.yaml "
      "--devices 64\n"
      "Example: olmo-harness runs import --db other.db --instances samples_*.jsonl --metric "
      "acc_norm");
  command.action([&options] { import_files(options); });
}

}  // namespace olmo::cli
