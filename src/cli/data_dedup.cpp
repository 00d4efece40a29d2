// `olmo-harness data dedup`.
#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/data_lines.h"
#include "core/compute/policy.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/process/activity.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "data/documents/dedup.h"
#include "data/public/corpus.h"
#include "data/public/fetch.h"

namespace olmo::cli {
namespace {

constexpr const char* kEvaluation = "evaluation";

struct DedupArguments {
  std::vector<std::string> inputs;
  std::string by = "document";
  std::vector<std::string> against;
  std::string output;
  std::string attributes;
  std::string data;
  std::string on_bad_line = "stop";
  int threads = 0;
  bool overwrite = false;
  bool json = false;
};

data::DedupBy parse_by(const std::string& word) {
  if (word == "document") return data::DedupBy::kDocument;
  if (word == "paragraph") return data::DedupBy::kParagraph;
  if (word == "words") return data::DedupBy::kWords;
  return data::DedupBy::kField;
}

data::DedupOptions options_of(const DedupArguments& arguments) {
  if (arguments.output.empty() == arguments.attributes.empty())
    throw Error(ErrorKind::kUsage,
                "data dedup: give either --output FILE, for the documents that remain, or "
                "--attributes NAME, for files that tell what was found");
  data::DedupOptions options;
  options.inputs.assign(arguments.inputs.begin(), arguments.inputs.end());
  options.by = parse_by(arguments.by);
  if (options.by == data::DedupBy::kField) options.field = arguments.by;
  for (const std::string& against : arguments.against) {
    if (against != kEvaluation) {
      options.against.emplace_back(against);
      continue;
    }
    const auto folder = data_folder(arguments.data);
    options.words_texts = during("reading the evaluation records", [&] {
      return data::add_evaluation_records(data::training_records_folder(folder),
                                          data::evaluation_data_folder(folder), options.words);
    });
  }
  options.output = arguments.output;
  options.attributes = arguments.attributes;
  options.on_bad_line = bad_line_policy(arguments.on_bad_line);
  options.threads = resolve_threads(arguments.threads);
  options.overwrite = arguments.overwrite;
  return options;
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? ""
                    : formatted(" (%.2f %%)",
                                100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

void print_report(const data::DedupReport& report, data::DedupBy by) {
  for (const data::DedupSource& source : report.sources) {
    std::cout << safe_line(source.path) << ": " << number_of(source.documents, "document") << ", "
              << source.duplicates << " found" << share(source.duplicates, source.documents);
    if (by == data::DedupBy::kParagraph)
      std::cout << "; " << number_of(source.paragraphs, "paragraph") << ", "
                << source.duplicate_paragraphs << " found"
                << share(source.duplicate_paragraphs, source.paragraphs);
    if (source.without_field > 0) std::cout << "; " << source.without_field << " without the field";
    std::cout << '\n';
  }
  std::cout << bad_lines_text(report.bad_lines);
  if (report.compared_with > 0)
    std::cout << "compared with " << number_of(report.compared_with, "document") << '\n';
  const data::DedupSource all = data::total(report);
  std::cout << "found: " << all.duplicates << " of " << number_of(all.documents, "document") << ", "
            << format_bytes(static_cast<double>(report.duplicate_bytes)) << " of "
            << format_bytes(static_cast<double>(report.text_bytes)) << " of text"
            << share(report.duplicate_bytes, report.text_bytes) << '\n';
  for (const auto& output : report.outputs)
    std::cout << "wrote " << safe_line(output.string()) << '\n';
}

void run_dedup(const DedupArguments& arguments) {
  data::DedupOptions options = options_of(arguments);
  data::DedupReport report;
  {
    ProgressLine line;
    options.on_progress = [&line](const Progress& progress) { line.show(progress); };
    report = data::dedup(std::move(options));  // it may hold the words of all evaluation records
  }
  if (arguments.json) {
    std::cout << json_text(data::to_json(report)) << '\n';
    return;
  }
  print_report(report, parse_by(arguments.by));
  if (!arguments.output.empty()) say_next({after_documents(arguments.output)});
}

}  // namespace

void add_data_dedup(const Command& data) {
  const Command command = data.add(
      "dedup", "Find documents and paragraphs that were there before, or that evaluations use");
  auto& arguments = command.options<DedupArguments>();
  command
      .option("INPUT", arguments.inputs,
              "Documents (.jsonl, .jsonl.gz, .jsonl.zst, .json.gz) or folders of them; of what is "
              "equal the first stays")
      .required();
  command
      .option("--by WORD", arguments.by,
              "What is compared: document, paragraph, a field (id, metadata.url), or words: 13 in "
              "a row that a text of --against has, too")
      .with_default();
  command
      .option("--against PATH,…", arguments.against,
              "Compare with these documents alone, and find what they have, too; evaluation: the "
              "records of `data fetch`, with --by words")
      .separated_by_commas()
      .one_at_a_time();
  command.option("--output FILE", arguments.output,
                 "Write what remains: FILE.jsonl, FILE.jsonl.gz or FILE.jsonl.zst");
  command.option("--attributes NAME", arguments.attributes,
                 "Write what was found, as Dolma's toolkit does: .../attributes/NAME/FILE for each "
                 ".../documents/FILE (see `data mix`)");
  add_data_folder(command, arguments.data);
  add_on_bad_line(command, arguments.on_bad_line);
  add_line_threads(command, arguments.threads);
  command.flag("--overwrite", arguments.overwrite, "Replace files that exist");
  command.json(arguments.json);
  command.footer(
      "Example:\n"
      "  olmo-harness data dedup corpus.jsonl.gz --output unique.jsonl.gz\n"
      "  olmo-harness data dedup unique.jsonl.gz --by words --against evaluation --output "
      "clean.jsonl.gz");
  command.action([&arguments] { run_dedup(arguments); });
}

}  // namespace olmo::cli
