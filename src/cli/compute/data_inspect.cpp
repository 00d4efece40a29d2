// What `olmo-harness data inspect` does.
#include <filesystem>
#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/compute/compute.h"
#include "cli/given_path.h"
#include "cli/named_record.h"
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

namespace olmo::cli::compute {
namespace {

constexpr std::int64_t kDefaultLength = 2048;

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

Inspection inspect_files(const InspectOptions& arguments) {
  std::vector<std::string> files = arguments.more;
  files.insert(files.begin(), arguments.input);
  const auto sidecar = data::read_sidecar(files.front());
  Inspection inspection;
  inspection.tokenizer = tokenizer_of(arguments.tokenizer, sidecar);
  data::BatchConfig& batches = inspection.batches;
  batches.data.paths = std::move(files);
  batches.data.memmap_dtype = to_string(data::dtype_of(arguments.dtype, sidecar));
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
Inspection inspect_config(const InspectOptions& arguments, const config::TrainConfig& config) {
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

Inspection inspect_run(const InspectOptions& arguments) {
  require_run("data inspect", arguments.input);
  const auto name = store::parse_run_name(arguments.input);
  const auto db = store::RunDb::open(name.database, store::OpenMode::kReadOnly);
  const store::RunRecord recorded = db.run(find_named_run(db, name));
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

Inspection prepare(const InspectOptions& arguments) {
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

}  // namespace

int inspect_data(const InspectOptions& arguments) {
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

}  // namespace olmo::cli::compute
