// What `olmo-harness checkpoint import|export` do.
#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/compute/compute.h"
#include "core/compute/libtorch.h"
#include "core/files/json.h"
#include "core/process/activity.h"
#include "core/text/safe_text.h"
#include "model/model_config.h"
#include "models/convert_model.h"
#include "train/olmo_checkpoint.h"

namespace olmo::cli::compute {
namespace {

using train::TakenState;

Json to_json(const std::optional<train::OlmoState>& state) {
  if (!state) return nullptr;
  return {{"step", state->state.step},
          {"tokens", state->state.tokens},
          {"epoch", state->position.epoch},
          {"instance", state->position.instance},
          {"counters", state->counters.empty() ? "reckoned" : state->counters}};
}

void print(const TakenState& taken) {
  if (!taken.left_out.empty())
    std::cout << "without the optimizer's state, for " << safe_line(taken.left_out)
              << ": load_weights takes it\n";
  const auto& state = taken.state;
  if (!state) return;
  std::cout << "with the optimizer's state after step " << state->state.step
            << ": load_path takes it\ncounters"
            << (state->counters.empty() ? ", if every batch had the size that config.yaml says"
                                        : " of " + state->counters)
            << ":\n  " << state->state.tokens << " tokens; the data go on with instance "
            << state->position.instance << " of epoch " << state->position.epoch << '\n';
}

void print(const models::ConvertedModel& converted, const ConvertOptions& options,
           const TakenState& taken = {}) {
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
                         {"state", to_json(taken.state)},
                         {"state_left_out", taken.left_out.empty() ? Json() : Json(taken.left_out)},
                         {"tokenizer", or_null(source.tokenizer.file)}};
    std::cout << json_text(result) << '\n';
    return;
  }
  std::cout << safe_line(source.path.string()) << " (" << to_string(source.format) << ", "
            << parameters << " parameters) is now " << safe_line(converted.path.string()) << ":\n";
  for (const auto& file : converted.files) std::cout << "  " << file << '\n';
  std::cout << converted.bytes << " bytes; weights sha256 " << converted.weights_digest.hex()
            << '\n';
  print(taken);
  if (!source.tokenizer.file) {
    std::cout << "its tokenizer is not on this machine"
              << (source.tokenizer.identifier ? " (" + *source.tokenizer.identifier + ")" : "")
              << ": copy its tokenizer.json into the new folder\n";
  }
}

}  // namespace

int import_checkpoint(const ConvertOptions& options) {
  apply_policy(resolve_policy("portable", "auto", 0));
  TakenState taken;
  const auto add_state = [&](const auto& source, auto& contents) {
    taken = train::add_olmo_state(source, contents);
  };
  const auto converted = during("copying the weights of " + options.source, [&] {
    return models::import_model(options.source, options.to, add_state);
  });
  print(converted, options, taken);
  return 0;
}

int export_checkpoint(const ConvertOptions& options) {
  apply_policy(resolve_policy("portable", "auto", 0));
  const models::ExportOptions how{
      .format = options.format == "hf" ? models::ExportFormat::kHf : models::ExportFormat::kOlmo,
      .bf16 = options.dtype == "bf16"};
  print(during("copying the weights of " + options.source,
               [&] { return models::export_model(options.source, options.to, how); }),
        options);
  return 0;
}

}  // namespace olmo::cli::compute
