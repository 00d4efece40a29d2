#include <filesystem>
#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/given_path.h"
#include "config/file.h"
#include "config/train_config.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/hash.h"
#include "core/process/activity.h"
#include "core/process/terminal.h"
#include "data/inspect.h"
#include "data/public/tokenizers.h"
#include "data/token_file.h"
#include "store/runs/recorded_run.h"
#include "train/beginning.h"
#include "train/recorded_places.h"

namespace olmo::cli {
namespace {

constexpr std::int64_t kDefaultLength = 2048;

struct InspectArguments {
  std::string input;              ///< token file, config or run
  std::vector<std::string> more;  ///< more token files, or key.path=value
  std::uint64_t step = 0;
  std::optional<std::int64_t> sequence_length;
  std::optional<std::int64_t> global_batch_size;
  std::optional<std::uint64_t> seed;
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
  if (!stated.empty()) return data::Tokenizer::load(data::require_tokenizer("--tokenizer", stated));
  if (!sidecar || !sidecar->tokenizer_path) return std::nullopt;
  const std::filesystem::path path = *sidecar->tokenizer_path;
  if (!std::filesystem::exists(path) || sidecar->tokenizer_sha256 != sha256_file(path).hex()) {
    log_warning("the tokenizer of the sidecar, " + path.string() +
                ", is gone or was changed; ids are shown, give --tokenizer for text");
    return std::nullopt;
  }
  return data::Tokenizer::load(path);
}

/// What `data inspect` is given, made ready: which tokens a step sees, and how to show them.
struct Inspection {
  data::BatchConfig batches;
  std::optional<data::Tokenizer> tokenizer;
  std::optional<std::uint32_t> eos_token_id;
  std::optional<std::string> recorded_hash;  ///< of the step, where a run was given and holds it
  bool of_run = false;
  std::int64_t chain_format = kChainFormat;  ///< of the run
};

Inspection inspect_files(const InspectArguments& arguments) {
  std::vector<std::string> files = arguments.more;
  files.insert(files.begin(), arguments.input);
  const auto sidecar = data::read_sidecar(files.front());
  Inspection inspection;
  inspection.tokenizer = tokenizer_of(arguments.tokenizer, sidecar);
  data::BatchConfig& batches = inspection.batches;
  batches.data.paths = std::move(files);
  batches.data.memmap_dtype = to_string(dtype_of(arguments.dtype, sidecar));
  batches.seed = arguments.seed.value_or(0);
  batches.data.shuffle = !arguments.no_shuffle;
  batches.sequence_length = arguments.sequence_length.value_or(kDefaultLength);
  batches.global_batch_size = arguments.global_batch_size.value_or(1);
  if (inspection.tokenizer) batches.vocab_size = inspection.tokenizer->vocab_size();
  inspection.eos_token_id = arguments.eos_token_id;
  if (!inspection.eos_token_id && sidecar) inspection.eos_token_id = sidecar->eos_token_id;
  if (!inspection.eos_token_id && inspection.tokenizer)
    inspection.eos_token_id = inspection.tokenizer->token_to_id("<|endoftext|>");
  return inspection;
}

/// Where the training of a config begins. The checkpoint of load_path is read where it decides
/// that.
DataPosition begin_of(const config::TrainConfig& config) {
  if (!config.load_path) return config::batch_config(config).begin;
  if (!train::takes_counters(config)) return train::begin_of_branch({}, config);
  const auto start = train::find_load_path(config, [](const std::filesystem::path& checkpoint) {
    return train::read_start_documents(store::CheckpointReader(checkpoint));
  });
  return train::begin_of_branch(start->saved, config);
}

/// The batches of a config. The sidecar of its token files knows best what made them: some of
/// OLMo's own configs name another tokenizer and another end of documents.
Inspection inspect_config(const InspectArguments& arguments, const config::TrainConfig& config) {
  if (arguments.sequence_length || arguments.global_batch_size || arguments.seed ||
      arguments.no_shuffle || !arguments.dtype.empty()) {
    throw Error(ErrorKind::kUsage,
                arguments.input +
                    ": says itself how its data is read; expected key.path=value (such as "
                    "data.seed=1) instead of --sequence-length, --global-batch-size, --seed, "
                    "--no-shuffle and --dtype");
  }
  Inspection inspection;
  inspection.batches = config::batch_config(config);
  inspection.batches.begin = begin_of(config);
  const auto sidecar =
      config.data.paths.empty() ? std::nullopt : data::read_sidecar(config.data.paths.front());
  inspection.tokenizer = tokenizer_of(arguments.tokenizer, sidecar);
  const auto named = data::find_tokenizer(config.tokenizer.identifier);
  if (!inspection.tokenizer && named) inspection.tokenizer = data::Tokenizer::load(*named);
  inspection.eos_token_id = arguments.eos_token_id;
  if (!inspection.eos_token_id && sidecar) inspection.eos_token_id = sidecar->eos_token_id;
  if (!inspection.eos_token_id)
    inspection.eos_token_id = static_cast<std::uint32_t>(config.model.eos_token_id);
  return inspection;
}

Inspection inspect_run(const InspectArguments& arguments) {
  require_run("data inspect", arguments.input);
  const auto name = store::parse_run_name(arguments.input);
  const auto db = store::RunDb::open(name.database, store::OpenMode::kReadOnly);
  const store::RunRecord recorded = db.run(db.find_run(name.run));
  auto loaded = config::parse_config(recorded.config, arguments.input + ".json", arguments.more);
  loaded.config.load_path = std::nullopt;  // where that stood is recorded
  train::use_recorded_places(loaded.config.data, store::read_inputs(db.records(), recorded.run_id));
  Inspection inspection = inspect_config(arguments, loaded.config);
  if (const auto begin = store::data_begin_of(store::read_attempts(db.records(), recorded.run_id)))
    inspection.batches.begin = *begin;
  inspection.of_run = true;
  inspection.chain_format = recorded.chain_format;
  const auto step = static_cast<std::int64_t>(arguments.step);
  for (const auto& [number, row] : store::read_steps(db.records(), recorded.run_id, step, step))
    inspection.recorded_hash = row.batch_hash;
  return inspection;
}

bool is_config_name(const std::string& name) {
  return name.ends_with(".json") || config::is_yaml_name(name);
}

/// True for a run (kRunForms).
bool is_run_name(const std::string& name) {
  const auto database = store::parse_run_name(name).database;
  return std::filesystem::is_directory(name) || database.extension() == ".db" ||
         is_database(database);
}

Inspection prepare(const InspectArguments& arguments) {
  if (is_config_name(arguments.input))
    return inspect_config(arguments, config::load_config(arguments.input, arguments.more).config);
  return is_run_name(arguments.input) ? inspect_run(arguments) : inspect_files(arguments);
}

/// What the record of a run says of the batch; empty unless a run was given.
std::string verdict(const Inspection& inspection, const data::InspectedStep& step) {
  if (!inspection.of_run) return {};
  const std::string hash = "batch hash " + step.digest.hex();
  if (!inspection.recorded_hash) return hash + " is not in the record: the run has no such step";
  if (inspection.chain_format != kChainFormat)
    return hash + " cannot be compared: the record's " + *inspection.recorded_hash +
           " has format " + std::to_string(inspection.chain_format) +
           ", which is not computed any more";
  if (*inspection.recorded_hash == step.digest.hex()) return hash + " equals the record";
  return hash + " differs from the record's " + *inspection.recorded_hash +
         ": the data files or the config are not those of the run";
}

int run_inspect(const InspectArguments& arguments) {
  Inspection inspection;
  const auto step = during("reading tokenizer and token files", [&] {
    inspection = prepare(arguments);
    data::BatchSource source(inspection.batches);
    return data::inspect_step(source, arguments.step,
                              inspection.tokenizer ? &*inspection.tokenizer : nullptr,
                              inspection.eos_token_id);
  });
  const std::string said = verdict(inspection, step);
  if (arguments.json) {
    Json json = data::to_json(step);
    if (inspection.of_run) json["recorded_batch_hash"] = or_null(inspection.recorded_hash);
    std::cout << json_text(json) << '\n';
    if (!said.empty()) log_line(said);
  } else {
    std::cout << data::to_text(step);
    if (!said.empty()) std::cout << '\n' << said << '\n';
  }
  const bool differs = inspection.chain_format == kChainFormat && inspection.recorded_hash &&
                       *inspection.recorded_hash != step.digest.hex();
  return differs ? static_cast<int>(ErrorKind::kCheckFailed) : 0;
}

void run_stats(const StatsArguments& arguments) {
  std::vector<data::TokenStats> files;
  for (const std::string& path : arguments.files) {
    const auto sidecar = data::read_sidecar(path);
    const auto eos = arguments.eos_token_id ? arguments.eos_token_id
                     : sidecar              ? sidecar->eos_token_id
                                            : std::nullopt;
    if (!eos)
      throw Error(ErrorKind::kUsage,
                  path + ": has no sidecar that names its EOS; give --eos-token-id");
    files.push_back(during("counting " + path, [&] {
      return data::token_stats(data::TokenFile(path, dtype_of(arguments.dtype, sidecar)), *eos,
                               arguments.sequence_length);
    }));
  }
  if (arguments.json) {
    Json rows = Json::array();
    for (const auto& file : files) rows.push_back(data::to_json(file));
    std::cout << json_text(Json{{"files", rows},
                                {"total", data::to_json(data::sum(files))},
                                {"sequence_length", arguments.sequence_length}})
              << '\n';
    return;
  }
  for (const auto& file : files) std::cout << data::to_text(file);
  if (files.size() > 1) std::cout << data::to_text(data::sum(files));
}

}  // namespace

void add_data_inspect(const Command& data) {
  const Command command =
      data.add("inspect", "Show what a training step saw: its instances, documents and text");
  auto& arguments = command.options<InspectArguments>();
  command
      .option(
          "INPUT", arguments.input,
          std::string("A run (") + kRunForms + "), a config (.json, .yaml, .yml), or a token file")
      .required();
  command.option("MORE", arguments.more,
                 "For a run or a config: key.path=value sets a key. For a token file: more token "
                 "files, in the order of the config");
  command.number("--step", arguments.step, kPositive, "Training step, from 1").required();
  command.number("--sequence-length", arguments.sequence_length, kSizes,
                 "For token files: `max_sequence_length` of the run (default: 2048)");
  command.number("--global-batch-size", arguments.global_batch_size, kSizes,
                 "For token files: `global_train_batch_size` of the run (default: 1)");
  command.number("--seed", arguments.seed, {0},
                 "For token files: `data.seed` of the run, else its `seed` (default: 0)");
  command.flag("--no-shuffle", arguments.no_shuffle,
               "For token files: do not shuffle, take instances in the order of the files");
  command
      .option("--dtype", arguments.dtype,
              "For token files: uint16 or uint32 (default: as the sidecar says, else uint16)")
      .one_of({"uint16", "uint32"});
  command
      .option(
          "--tokenizer FILE|NAME", arguments.tokenizer,
          "A tokenizer.json, or the name of a fetched one, dolma-v1_5 (default: the one that the "
          "sidecar names, else the config's)")
      .takes(Takes::kTokenizer);
  command.number("--eos-token-id", arguments.eos_token_id, kTokenIds,
                 "Id that ends a document (default: the sidecar's, else the config's, else "
                 "the tokenizer's <|endoftext|>)");
  command.json(arguments.json);
  command.footer(
      "Where a run is given, the batch hash is compared with the one that the run recorded for "
      "that step; exit code 5 if they differ.\n"
      "Examples:\n"
      "  olmo-harness data inspect runs/quickstart --step 40\n"
      "  olmo-harness data inspect configs/train/quickstart.json data.paths=[corpus.npy] --step 3\n"
      "  olmo-harness data inspect corpus.npy --step 3 --sequence-length 256 "
      "--global-batch-size 16 --seed 6198");
  command.action([&arguments] { return run_inspect(arguments); });
}

void add_data_stats(const Command& data) {
  const Command command = data.add("stats", "Count tokens, documents and lengths of token files");
  auto& arguments = command.options<StatsArguments>();
  command.option("FILE", arguments.files, "Token files").required();
  command.number("--sequence-length", arguments.sequence_length, kSizes,
                 "Count sequences of this length (default: 2048)");
  command
      .option("--dtype", arguments.dtype,
              "uint16 or uint32 (default: as the sidecar says, else uint16)")
      .one_of({"uint16", "uint32"});
  command.number("--eos-token-id", arguments.eos_token_id, kTokenIds,
                 "Id that ends a document (default: the sidecar's)");
  command.json(arguments.json);
  command.footer("Example:\n  olmo-harness data stats corpus.npy --sequence-length 2048");
  command.action([&arguments] { run_stats(arguments); });
}

}  // namespace olmo::cli
