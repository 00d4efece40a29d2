#include <iostream>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/data_commands.h"
#include "core/error.h"
#include "core/log.h"
#include "data/inspect.h"
#include "data/sidecar.h"
#include "data/token_stats.h"

namespace olmo::cli {
namespace {

struct InspectArguments {
  std::vector<std::string> files;
  std::uint64_t step = 0;
  std::int64_t sequence_length = 2048;
  std::int64_t global_batch_size = 1;
  std::uint64_t seed = 0;
  bool no_shuffle = false;
  std::string dtype;
  std::string tokenizer;
  std::optional<std::uint32_t> eos_token_id;
  bool json = false;
};

struct StatsArguments {
  std::vector<std::string> files;
  std::uint64_t sequence_length = 2048;
  std::string dtype;
  std::optional<std::uint32_t> eos_token_id;
  bool json = false;
};

/// The dtype of a file: as stated, else as its sidecar says, else OLMo's default.
data::TokenDtype dtype_of(const std::string& stated, const std::optional<data::Sidecar>& sidecar) {
  if (!stated.empty()) return data::parse_token_dtype(stated);
  return sidecar && sidecar->dtype ? *sidecar->dtype : data::TokenDtype::kUint16;
}

/// The tokenizer that was named, else the one of the sidecar if it still is that file.
std::optional<data::Tokenizer> tokenizer_of(const std::string& stated,
                                            const std::optional<data::Sidecar>& sidecar) {
  if (!stated.empty()) return data::Tokenizer::load(stated);
  if (!sidecar || !sidecar->tokenizer_path) return std::nullopt;
  const std::filesystem::path path = *sidecar->tokenizer_path;
  if (!std::filesystem::exists(path) || sidecar->tokenizer_sha256 != sha256_file(path).hex()) {
    log_warning("the tokenizer of the sidecar, " + path.string() +
                ", is gone or was changed; ids are shown, give --tokenizer for text");
    return std::nullopt;
  }
  return data::Tokenizer::load(path);
}

void run_inspect(const InspectArguments& arguments) {
  const auto sidecar = data::read_sidecar(arguments.files.front());
  const auto tokenizer = tokenizer_of(arguments.tokenizer, sidecar);
  data::BatchConfig config;
  config.data.paths = arguments.files;
  config.data.memmap_dtype = to_string(dtype_of(arguments.dtype, sidecar));
  config.seed = arguments.seed;
  config.shuffle = !arguments.no_shuffle;
  config.sequence_length = arguments.sequence_length;
  config.global_batch_size = arguments.global_batch_size;
  if (tokenizer) config.vocab_size = tokenizer->vocab_size();
  auto eos = arguments.eos_token_id;
  if (!eos && sidecar) eos = sidecar->eos_token_id;
  if (!eos && tokenizer) eos = tokenizer->token_to_id("<|endoftext|>");
  data::BatchSource source(config);
  const auto step =
      data::inspect_step(source, arguments.step, tokenizer ? &*tokenizer : nullptr, eos);
  if (arguments.json) {
    std::cout << data::to_json(step).dump() << '\n';
  } else {
    std::cout << data::to_text(step);
  }
}

void run_stats(const StatsArguments& arguments) {
  if (arguments.sequence_length == 0)
    throw Error(ErrorKind::kUsage, "data stats: --sequence-length must be positive");
  std::vector<data::TokenStats> files;
  for (const std::string& path : arguments.files) {
    const auto sidecar = data::read_sidecar(path);
    const auto eos = arguments.eos_token_id ? arguments.eos_token_id
                     : sidecar              ? sidecar->eos_token_id
                                            : std::nullopt;
    if (!eos)
      throw Error(ErrorKind::kUsage,
                  path + ": has no sidecar that names its EOS; give --eos-token-id");
    files.push_back(data::token_stats(data::TokenFile(path, dtype_of(arguments.dtype, sidecar)),
                                      *eos, arguments.sequence_length));
  }
  if (arguments.json) {
    Json rows = Json::array();
    for (const auto& file : files) rows.push_back(data::to_json(file));
    std::cout << Json{{"files", rows},
                      {"total", data::to_json(data::sum(files))},
                      {"sequence_length", arguments.sequence_length}}
                     .dump()
              << '\n';
    return;
  }
  for (const auto& file : files) std::cout << data::to_text(file);
  if (files.size() > 1) std::cout << data::to_text(data::sum(files));
}

}  // namespace

void add_data_inspect(CLI::App& data, int&) {
  CLI::App* command = data.add_subcommand("inspect", "Show what a training step saw, as text");
  const auto arguments = std::make_shared<InspectArguments>();
  command->add_option("files", arguments->files, "Token files, in the order of the config")
      ->required();
  command->add_option("--step", arguments->step, "Training step, from 1")->required();
  command->add_option("--sequence-length", arguments->sequence_length,
                      "`max_sequence_length` of the run");
  command->add_option("--global-batch-size", arguments->global_batch_size,
                      "`global_train_batch_size` of the run");
  command->add_option("--seed", arguments->seed, "`data.seed` of the run, else its `seed`");
  command->add_flag("--no-shuffle", arguments->no_shuffle, "The order of the files");
  command->add_option("--dtype", arguments->dtype,
                      "uint16 or uint32 (default: as the sidecar says, else uint16)");
  command->add_option("--tokenizer", arguments->tokenizer,
                      "tokenizer.json (default: the one that the sidecar names)");
  command->add_option(
      "--eos-token-id", arguments->eos_token_id,
      "Id that ends a document (default: the sidecar's, else the tokenizer's <|endoftext|>)");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->footer(
      "Example:\n  olmo-harness data inspect corpus.npy --step 3 --sequence-length 256 "
      "--global-batch-size 8 --seed 6198");
  command->callback([arguments] { run_inspect(*arguments); });
}

void add_data_stats(CLI::App& data, int&) {
  CLI::App* command =
      data.add_subcommand("stats", "Count tokens, documents and lengths of token files");
  const auto arguments = std::make_shared<StatsArguments>();
  command->add_option("files", arguments->files, "Token files")->required();
  command->add_option("--sequence-length", arguments->sequence_length,
                      "Count sequences of this length");
  command->add_option("--dtype", arguments->dtype,
                      "uint16 or uint32 (default: as the sidecar says, else uint16)");
  command->add_option("--eos-token-id", arguments->eos_token_id,
                      "Id that ends a document (default: the sidecar's)");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->footer("Example:\n  olmo-harness data stats corpus.npy --sequence-length 2048");
  command->callback([arguments] { run_stats(*arguments); });
}

}  // namespace olmo::cli
