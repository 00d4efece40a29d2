#include "cli/commands.h"
#include "cli/compute/compute.h"

namespace olmo::cli {
namespace {

constexpr char kCheckpointHelp[] =
    "A checkpoint directory, or a run's folder (its latest complete checkpoint)";
constexpr char kTensorsHelp[] =
    "A checkpoint directory, a run's folder (its latest complete checkpoint), or weights under "
    "OLMo's names: a .safetensors file or a folder with model.safetensors or its shards";

}  // namespace

void add_checkpoint(const Command& program, const char* group) {
  const Command checkpoint =
      program.add("checkpoint", "Inspect, verify, compare and convert checkpoints", group);
  checkpoint.footer("Example: olmo-harness checkpoint verify runs/quickstart");
  auto& options = checkpoint.options<CheckpointOptions>();

  const Command inspecting = checkpoint.add("inspect", "Show what a checkpoint holds");
  inspecting.checkpoint(options.path, "CHECKPOINT", kCheckpointHelp).required();
  inspecting.flag("--tensors", options.tensors, "List every tensor with its shape and SHA-256");
  inspecting.flag("--config", options.config, "Show the config of its run");
  inspecting.json(options.json);
  inspecting.footer("Example: olmo-harness checkpoint inspect runs/quickstart --tensors");
  inspecting.action([&options] { return compute::inspect_checkpoint(options); });

  const Command verifying = checkpoint.add(
      "verify",
      "Read every byte of a checkpoint and compare it with the digests with which it was saved");
  verifying.checkpoint(options.path, "CHECKPOINT", kCheckpointHelp).required();
  verifying.json(options.json);
  verifying.footer(
      "Exit code: 0 whole, 5 a tensor differs from its digest, 4 not readable as a checkpoint.\n"
      "Example: olmo-harness checkpoint verify runs/quickstart/step100");
  verifying.action([&options] { return compute::verify_checkpoint(options); });

  const Command comparing =
      checkpoint.add("diff", "Compare the tensors of two checkpoints bit by bit");
  comparing.checkpoint(options.path, "A", kTensorsHelp).required();
  comparing.checkpoint(options.other, "B", kTensorsHelp).required();
  comparing.flag("--weights-only", options.weights_only,
                 "Compare the weights only, not the optimizer's tensors");
  comparing.json(options.json);
  comparing.footer(
      "Exit code: 0 the same bits, 5 a difference, 4 or 3 not readable.\n"
      "Examples:\n"
      "  olmo-harness checkpoint diff runs/a/step100 runs/b/step100\n"
      "  olmo-harness checkpoint diff runs/a/step100 weights.safetensors --weights-only");
  comparing.action([&options] { return compute::diff_checkpoints(options); });

  add_checkpoint_import(checkpoint);
  add_checkpoint_export(checkpoint);
}

}  // namespace olmo::cli
