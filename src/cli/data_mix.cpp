// `olmo-harness data mix`.
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/data_lines.h"
#include "config/mix.h"
#include "core/compute/policy.h"
#include "core/files/json.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "data/documents/mix.h"

namespace olmo::cli {
namespace {

struct MixArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string on_bad_line = "stop";
  int threads = 0;
  bool dry_run = false;
  bool overwrite = false;
  bool json = false;
};

void print_plan(const data::MixOptions& options, bool json) {
  Json streams = Json::array();
  for (const data::MixStream& stream : options.streams) {
    Json outputs = Json::array();
    for (const data::MixShard& shard : data::plan_mix(stream, options.shuffle)) {
      Json inputs = Json::array();
      for (const auto& input : shard.inputs) inputs.push_back(input.string());
      if (!json)
        std::cout << safe_line(shard.output.string()) << ": from "
                  << number_of(shard.inputs.size(), "file") << ", "
                  << safe_line(shard.inputs.front().string())
                  << (shard.inputs.size() > 1 ? " to " + safe_line(shard.inputs.back().string())
                                              : std::string())
                  << '\n';
      outputs.push_back({{"path", shard.output.string()}, {"inputs", std::move(inputs)}});
    }
    streams.push_back({{"name", stream.name}, {"outputs", std::move(outputs)}});
  }
  if (json) std::cout << json_text(Json{{"streams", std::move(streams)}}) << '\n';
}

void print_report(const data::MixReport& report) {
  for (const data::MixReport::Stream& stream : report.streams) {
    std::cout << safe_line(stream.name) << ": " << stream.written() << " of "
              << number_of(stream.documents, "document") << ", "
              << format_bytes(static_cast<double>(stream.text_bytes)) << " of text; left out "
              << stream.filtered << " by filters, " << stream.too_short << " too short; "
              << number_of(stream.replaced_spans, "span") << " replaced\n";
    for (const data::MixShard& shard : stream.shards)
      std::cout << "wrote " << safe_line(shard.output.string()) << '\n';
  }
  std::cout << bad_lines_text(report.bad_lines);
}

void run_mix(const MixArguments& arguments) {
  config::MixConfig config = config::read_mix_config(arguments.config, arguments.overrides);
  for (const std::string& note : config.notes) log_warning(note);
  data::MixOptions& options = config.options;
  if (arguments.threads > 0) options.threads = arguments.threads;
  options.threads = resolve_threads(options.threads);
  options.on_bad_line = bad_line_policy(arguments.on_bad_line);
  options.overwrite = arguments.overwrite;
  if (arguments.dry_run || config.dry_run) return print_plan(options, arguments.json);
  data::MixReport report;
  {
    ProgressLine line;
    options.on_progress = [&line](const Progress& progress) { line.show(progress); };
    report = data::mix(options);
  }
  if (arguments.json) {
    std::cout << json_text(data::to_json(report)) << '\n';
    return;
  }
  print_report(report);
  say_next({after_documents(options.streams.front().output.string())});
}

}  // namespace

void add_data_mix(const Command& data) {
  const Command command =
      data.add("mix", "Filter documents and cut or replace parts of them, as Dolma's mixer does");
  auto& arguments = command.options<MixArguments>();
  command
      .option("CONFIG", arguments.config,
              "A config of Dolma's mixer: streams of documents, their attributes and filters")
      .required()
      .takes(Takes::kFile);
  command.flag("--dry-run", arguments.dry_run, "Show what would be written from what");
  add_on_bad_line(command, arguments.on_bad_line);
  command.number("--threads", arguments.threads, kThreads,
                 "Number of threads; 0: the config's `processes`, else every core that the process "
                 "may use. The result does not depend on it");
  command.flag("--overwrite", arguments.overwrite, "Replace files that exist");
  command.json(arguments.json);
  command.overrides(arguments.overrides);
  command.footer("Example:\n  olmo-harness data mix mix.yaml --dry-run");
  command.action([&arguments] { run_mix(arguments); });
}

}  // namespace olmo::cli
