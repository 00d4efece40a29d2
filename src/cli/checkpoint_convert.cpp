// `olmo-harness checkpoint import|export`: models to and from the formats of other software.
#include "cli/commands.h"
#include "cli/compute/compute.h"

namespace olmo::cli {
namespace {

constexpr char kToHelp[] = "The folder to make; it must not exist";

}  // namespace

void add_checkpoint_import(const Command& checkpoint) {
  const Command command =
      checkpoint.add("import", "Make a checkpoint of ours from Hugging Face's or OLMo's files");
  auto& options = command.options<ConvertOptions>();
  command
      .option(
          "FOLDER", options.source,
          "Hugging Face (config.json, *.safetensors or *.bin; OLMo 1, 2 or 3), OLMo (config.yaml, "
          "model.safetensors or model.pt and, if they are there, optim.* and train.pt; or what its "
          "trainer saved in shards) or OLMo-core (config.json, model_and_optim, train)")
      .required();
  command.option("--to DIR", options.to, kToHelp).required();
  command.json(options.json);
  command.footer(
      "The new folder is a run directory with weights only (step0): eval, inspect, verify, diff "
      "and load_weights take it. With the state of AdamW, or OLMo's LionW, it is a whole "
      "checkpoint (step N), which load_path takes, too. Nothing has to be imported to be "
      "evaluated.\n"
      "Example: olmo-harness checkpoint import OLMo-2-0425-1B --to runs/olmo2-1b");
  command.action([&options] { return compute::import_checkpoint(options); });
}

void add_checkpoint_export(const Command& checkpoint) {
  const Command command = checkpoint.add(
      "export", "Write a checkpoint's weights for Hugging Face's transformers, or for OLMo");
  auto& options = command.options<ConvertOptions>();
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
  options.dtype = "fp32";
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
  command.action([&options] { return compute::export_checkpoint(options); });
}

}  // namespace olmo::cli
