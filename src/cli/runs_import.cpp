// `olmo-harness runs import`: other people's logs in a database of ours, so that reports can
// compare them.
#include <iostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/runs_commands.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/json.h"
#include "core/log.h"
#include "store/import_evaluation.h"
#include "store/import_steps.h"

namespace olmo::cli {
namespace {

namespace fs = std::filesystem;
using store::OpenMode;

struct Options {
  std::string file;
  std::vector<std::string> instances;
  std::string database, name, config, run, weights_digest;
  std::string format = "auto";
  std::string metric = "acc";
  std::vector<std::string> map, tags;
  std::optional<std::int64_t> tokens_per_step, step;
  bool json = false;
};

struct GivenConfig {
  std::string text = "{}";
  std::uint64_t seed = 0;
};

GivenConfig read_config(const std::string& path) {
  if (path.empty()) return {};
  const Json config = read_json_file(path);
  if (!config.is_object())
    throw Error(ErrorKind::kInput, path + ": a config must be a JSON object");
  const auto seed = config.find("seed");
  const bool has_seed = seed != config.end() && seed->is_number_unsigned();
  return {config.dump(), has_seed ? seed->get<std::uint64_t>() : 0};
}

void print(const Options& options, const nlohmann::ordered_json& result, const std::string& line) {
  if (options.json) {
    std::cout << result.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    std::cout << line << "\n";
  }
}

std::string counted(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

void import_steps(const Options& options) {
  store::StepLogOptions reading;
  if (options.format != "auto") reading.format = store::parse_log_format(options.format);
  reading.columns = store::parse_column_map(options.map);
  reading.tokens_per_step = options.tokens_per_step;
  const GivenConfig config = read_config(options.config);
  const store::StepLog log = store::read_step_log(options.file, reading);

  store::RecordDatabase records(options.database, OpenMode::kCreate);
  if (const auto before = store::find_import(records, log.sha256))
    log_warning(options.file + ": was imported before, as run " + *before);
  const store::ImportedRun run{
      .name = options.name.empty() ? fs::path(options.file).stem().string() : options.name,
      .config = config.text,
      .seed = config.seed,
      .tags = options.tags,
      .command_line = command_line()};
  const std::string id = store::write_step_log(records, log, run);
  if (log.skipped > 0)
    log_line(options.file + ": " + counted(static_cast<std::size_t>(log.skipped), "row") +
             " without a loss left out");
  for (const auto& restart : log.restarts) log_line(options.file + ": " + restart.message);
  print(options,
        {{"run_id", id},
         {"database", options.database},
         {"format", store::to_string(log.format)},
         {"columns", log.columns},
         {"steps", log.steps.size()},
         {"first_step", log.steps.front().step},
         {"last_step", log.steps.back().step},
         {"rows_without_loss", log.skipped},
         {"restarts", log.restarts.size()}},
        options.database + ":" + id + ": " + counted(log.steps.size(), "step") + " (" +
            std::to_string(log.steps.front().step) + " to " +
            std::to_string(log.steps.back().step) + ") of " + run.name);
}

void import_instances(const Options& options) {
  store::ImportedEvaluation evaluation;
  evaluation.metric = store::parse_import_metric(options.metric);
  evaluation.checkpoint = options.name.empty() ? options.instances.front() : options.name;
  evaluation.command_line = command_line();
  evaluation.step = options.step;
  evaluation.weights_digest = options.weights_digest;
  if (const auto& digest = options.weights_digest;
      !digest.empty() &&
      (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos))
    throw Error(ErrorKind::kUsage,
                "--weights-digest must be 64 hexadecimal digits, got '" + digest + "'");
  std::vector<store::InstanceFile> files;
  for (const auto& path : options.instances) {
    files.push_back(store::read_instance_file(path));
    store::rank_instances(files.back(), evaluation.metric);
  }
  store::check_tasks(files);

  auto db = store::RunDb::open(options.database,
                               options.run.empty() ? OpenMode::kCreate : OpenMode::kReadWrite);
  if (!options.run.empty()) evaluation.run_id = db.find_run(options.run);
  if (const auto before = store::find_imported_evaluation(db.records(), files, evaluation.metric))
    log_warning(options.instances.front() + ": was imported before, as evaluation " + *before);
  const std::string id = store::write_instances(db.records(), files, evaluation);
  nlohmann::ordered_json tasks = nlohmann::ordered_json::object();
  for (const auto& file : files) tasks[file.task] = file.instances;
  print(options, {{"evaluation_id", id}, {"database", options.database}, {"instances", tasks}},
        options.database + ":" + id + ": instances of " + counted(files.size(), "task"));
}

void import_files(const Options& options) {
  if (options.file.empty() == options.instances.empty())
    throw Error(ErrorKind::kUsage, "runs import: give either a log or --instances and their files");
  if (options.instances.empty()) {
    import_steps(options);
  } else {
    import_instances(options);
  }
}

}  // namespace

void add_runs_import(CLI::App& runs, int&) {
  auto options = std::make_shared<Options>();
  CLI::App* command = runs.add_subcommand(
      "import", "Other trainers' logs as a run, other evaluators' instances as an evaluation");
  command->add_option("FILE", options->file, "A log: CSV, JSON lines, columns or a console's");
  command->add_option("--db", options->database, "Database to write to; made if there is none")
      ->required();
  command->add_option("--name", options->name,
                      "Of the run, or of what was evaluated (default: the file's)");
  command->add_option("--format", options->format, "auto, csv, jsonl, columns, torchtitan or olmo")
      ->capture_default_str();
  command
      ->add_option("--map", options->map,
                   "TARGET=COLUMN; targets: step, tokens, loss, grad_norm, lr, "
                   "tokens_per_second, seconds")
      ->allow_extra_args(false);
  command
      ->add_option("--tokens-per-step", options->tokens_per_step,
                   "Where the log does not tell the tokens")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 50));
  command->add_option("--config", options->config, "JSON of the other trainer, kept with the run");
  command->add_option("--tag", options->tags, "A word to find the run by")->allow_extra_args(false);
  command->add_option("--instances", options->instances,
                      "lm-eval's samples_*.jsonl or oe-eval's task-*-predictions.jsonl");
  command->add_option("--metric", options->metric, "acc or acc_norm: what chooses, for --instances")
      ->capture_default_str();
  command->add_option("--run", options->run,
                      "Run to which the instances belong (a prefix will do)");
  command->add_option("--step", options->step, "Step of that run")->check(CLI::NonNegativeNumber);
  command->add_option("--weights-digest", options->weights_digest,
                      "SHA-256 of the weights that made the instances");
  command->add_flag("--json", options->json, "One JSON object on stdout");
  command->footer(
      "Names that OLMo, OLMo-core, torchtitan, Hugging Face, Lightning and Megatron use are known; "
      "--map tells others.\n"
      "Example: olmo-harness runs import wandb.csv --db other.db --name 'OLMo on H100' --map "
      "loss=train/CrossEntropyLoss\n"
      "Example: olmo-harness runs import --db other.db --instances samples_*.jsonl --metric "
      "acc_norm");
  command->callback([options] { import_files(*options); });
}

}  // namespace olmo::cli
