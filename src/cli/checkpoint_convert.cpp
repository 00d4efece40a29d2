// `olmo-harness checkpoint import|export`: models to and from the formats of other software.
#include <filesystem>
#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/compute/policy.h"
#include "core/files/json.h"
#include "core/process/activity.h"
#include "core/text/safe_text.h"
#include "model/model_config.h"
#include "models/convert_model.h"
#include "train/olmo_checkpoint.h"

namespace olmo::cli {
namespace {

struct Options {
  std::string source;
  std::string to;
  std::string format = "hf";
  std::string dtype = "fp32";
  bool json = false;
};

/// What an imported checkpoint of OLMo's has beside its weights.
using State = std::optional<train::OlmoState>;

Json to_json(const State& state) {
  if (!state) return nullptr;
  return {{"step", state->state.step},
          {"tokens", state->state.tokens},
          {"epoch", state->position.epoch},
          {"instance", state->position.instance},
          {"counters", state->counters.empty() ? "reckoned" : state->counters}};
}

void print(const State& state) {
  if (!state) return;
  std::cout << "with the optimizer's state after step " << state->state.step
            << ": load_path takes it\ncounters"
            << (state->counters.empty() ? ", if every batch had the size that config.yaml says"
                                        : " of " + state->counters)
            << ":\n  " << state->state.tokens << " tokens; the data go on with instance "
            << state->position.instance << " of epoch " << state->position.epoch << '\n';
}

void print(const models::ConvertedModel& converted, const Options& options,
           const State& state = {}) {
  const auto& source = converted.source;
  const auto parameters = model::count_parameters(source.config).total;
  if (options.json) {
    const Json result = {{"source", source.path.string()},
                         {"source_format", to_string(source.format)},
                         {"path", converted.path.string()},
                         {"files", converted.files},
                         {"bytes", converted.bytes},
                         {"parameters", parameters},
                         {"weights_digest", converted.weights_digest.hex()},
                         {"state", to_json(state)},
                         {"tokenizer", or_null(source.tokenizer.file)}};
    std::cout << json_text(result) << '\n';
    return;
  }
  std::cout << safe_line(source.path.string()) << " (" << to_string(source.format) << ", "
            << parameters << " parameters) is now " << safe_line(converted.path.string()) << ":\n";
  for (const auto& file : converted.files) std::cout << "  " << file << '\n';
  std::cout << converted.bytes << " bytes; weights sha256 " << converted.weights_digest.hex()
            << '\n';
  print(state);
  if (!source.tokenizer.file) {
    std::cout << "its tokenizer is not on this machine"
              << (source.tokenizer.identifier ? " (" + *source.tokenizer.identifier + ")" : "")
              << ": copy its tokenizer.json into the new folder\n";
  }
}

constexpr char kToHelp[] = "The folder to make; it must not exist";

}  // namespace

void add_checkpoint_import(const Command& checkpoint) {
  const Command command =
      checkpoint.add("import", "Make a checkpoint of ours from Hugging Face's or OLMo's files");
  auto& options = command.options<Options>();
  command
      .option(
          "FOLDER", options.source,
          "Hugging Face (config.json, *.safetensors or *.bin; OLMo 1, 2 or 3), OLMo (config.yaml, "
          "model.safetensors or model.pt and, if they are there, optim.* and train.pt; or what its "
          "trainer saved in shards) or OLMo-core (config.json, model_and_optim)")
      .required();
  command.option("--to DIR", options.to, kToHelp).required();
  command.json(options.json);
  command.footer(
      "The new folder is a run directory with weights only (step0): eval, inspect, verify, diff "
      "and load_weights take it. With the state of OLMo's optimizer it is a whole checkpoint "
      "(step N), which load_path takes, too. Nothing has to be imported to be evaluated.\n"
      "Example: olmo-harness checkpoint import OLMo-2-0425-1B --to runs/olmo2-1b");
  command.action([&options] {
    apply_policy(resolve_policy("portable", "auto", 0));
    State state;
    const auto add_state = [&](const auto& source, auto& contents) {
      state = train::add_olmo_state(source, contents);
    };
    const auto converted = during("copying the weights of " + options.source, [&] {
      return models::import_model(options.source, options.to, add_state);
    });
    print(converted, options, state);
  });
}

void add_checkpoint_export(const Command& checkpoint) {
  const Command command = checkpoint.add(
      "export", "Write a checkpoint's weights for Hugging Face's transformers, or for OLMo");
  auto& options = command.options<Options>();
  command
      .checkpoint(options.source, "CHECKPOINT",
                  "A checkpoint, a run's folder (its latest), or what `import` reads")
      .required();
  command.option("--to DIR", options.to, kToHelp).required();
  command
      .option("--format", options.format,
              "hf: config.json and model.safetensors, in shards of 5 GB; olmo: config.yaml "
              "and model.pt")
      .one_of({"hf", "olmo"})
      .with_default();
  command.option("--dtype", options.dtype, "fp32 keeps every bit; bf16 rounds, to half the size")
      .one_of({"fp32", "bf16"})
      .with_default();
  command.json(options.json);
  command.footer(
      "Examples:\n"
      "  olmo-harness checkpoint export runs/quickstart --to quickstart-hf\n"
      "  olmo-harness checkpoint export runs/quickstart/step100 --to olmo-layout --format olmo\n"
      "then, in Python: AutoModelForCausalLM.from_pretrained(\"quickstart-hf\"), or "
      "OLMo.from_checkpoint(\"olmo-layout\")");
  command.action([&options] {
    apply_policy(resolve_policy("portable", "auto", 0));
    const models::ExportOptions how{
        .format = options.format == "hf" ? models::ExportFormat::kHf : models::ExportFormat::kOlmo,
        .bf16 = options.dtype == "bf16"};
    print(during("copying the weights of " + options.source,
                 [&] { return models::export_model(options.source, options.to, how); }),
          options);
  });
}

}  // namespace olmo::cli
