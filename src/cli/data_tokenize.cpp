#include <cstdio>
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/json.h"
#include "core/log.h"
#include "core/policy.h"
#include "core/progress_line.h"
#include "data/tokenize.h"

namespace olmo::cli {
namespace {

struct Arguments {
  std::vector<std::string> inputs;
  std::string tokenizer;
  std::string output;
  std::optional<std::uint32_t> eos_token_id;
  std::string dtype = "auto";
  std::string on_bad_line = "stop";
  int threads = 0;
  std::uint64_t max_tokens_per_file = 0;
  bool overwrite = false;
  bool json = false;
};

void print_report(const data::TokenizeReport& report, double seconds) {
  for (const auto& output : report.outputs) {
    std::cout << output.path.string() << ": " << output.tokens << " tokens ("
              << to_string(report.dtype) << "), " << output.documents << " documents, sha256 "
              << output.digest.hex() << '\n';
  }
  if (report.bad_line_count > 0) {
    std::cout << report.bad_line_count
              << " bad lines were skipped; the first: " << report.bad_lines.front().file << ':'
              << report.bad_lines.front().line << ": " << report.bad_lines.front().problem << '\n';
  }
  char text[80];
  std::snprintf(text, sizeof text, "%s of text in %.1f s, %.1f MB/s\n",
                format_bytes(static_cast<double>(report.text_bytes)).c_str(), seconds,
                static_cast<double>(report.text_bytes) / 1e6 / seconds);
  std::cout << text;
}

void run_tokenize(const Arguments& arguments) {
  data::TokenizeOptions options;
  options.inputs.assign(arguments.inputs.begin(), arguments.inputs.end());
  options.tokenizer_path = arguments.tokenizer;
  options.output = arguments.output;
  options.eos_token_id = arguments.eos_token_id;
  if (arguments.dtype != "auto") options.dtype = data::parse_token_dtype(arguments.dtype);
  options.on_bad_line =
      arguments.on_bad_line == "skip" ? data::BadLinePolicy::kSkip : data::BadLinePolicy::kStop;
  options.threads = resolve_policy("portable", "auto", arguments.threads).threads;
  options.max_tokens_per_file = arguments.max_tokens_per_file;
  options.overwrite = arguments.overwrite;
  const data::Tokenizer tokenizer = data::Tokenizer::load(arguments.tokenizer);
  data::TokenizeReport report;
  double seconds = 0;
  {
    ProgressLine line;
    options.on_progress = [&line](const Progress& progress) { line.show(progress); };
    report = data::tokenize(options, tokenizer);
    seconds = line.seconds();
  }
  for (const std::string& warning : report.warnings) log_warning(warning);
  if (arguments.json) {
    std::cout << json_text(data::to_json(report)) << '\n';
  } else {
    print_report(report, seconds);
  }
}

}  // namespace

void add_data_tokenize(const Command& data) {
  const Command command =
      data.add("tokenize", "Make OLMo's token files from text (JSON lines with a field `text`)");
  auto& arguments = command.options<Arguments>();
  command
      .option(
          "INPUT", arguments.inputs,
          "Text files (.jsonl, .jsonl.gz, .jsonl.zst, .json.gz) or folders of them; - for stdin")
      .required();
  command.option("--tokenizer FILE", arguments.tokenizer, "tokenizer.json").required();
  command
      .option("--output FILE", arguments.output, "FILE.npy, or a folder for tokens_00000.npy, ...")
      .required();
  command.number("--eos-token-id", arguments.eos_token_id, kTokenIds,
                 "Id that ends a document (default: the tokenizer's <|endoftext|>)");
  command
      .option("--dtype", arguments.dtype,
              "uint16, uint32, or auto: the narrowest that holds the vocabulary")
      .one_of({"auto", "uint16", "uint32"});
  command
      .option("--on-bad-line", arguments.on_bad_line,
              "What to do with a line that gives no document: stop or skip")
      .one_of({"stop", "skip"});
  command.number("--threads", arguments.threads, kThreads,
                 "Number of threads; 0 takes every core. The result does not depend on it");
  command.number("--max-tokens-per-file", arguments.max_tokens_per_file, kPositive,
                 "Start a new file after N tokens (default: no limit for --output FILE.npy, 512 Mi "
                 "for a folder)");
  command.flag("--overwrite", arguments.overwrite, "Replace token files that exist");
  command.json(arguments.json);
  command.footer(
      "Example:\n  olmo-harness data tokenize corpus.jsonl.gz --tokenizer "
      "allenai_gpt-neox-olmo-dolma-v1_5.json --output corpus.npy");
  command.action([&arguments] { run_tokenize(arguments); });
}

}  // namespace olmo::cli
