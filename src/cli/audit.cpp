// `olmo-harness audit`: recorded steps, computed again and compared with the record.
#include "cli/commands.h"
#include "cli/compute/compute.h"
#include "core/process/process.h"

namespace olmo::cli {

void add_audit(const Command& program, const char* group) {
  const Command command = program.add(
      "audit", "Train recorded steps again on this machine and compare with the record", group);
  auto& arguments = command.options<AuditOptions>();
  command.run(arguments.run);
  command.overrides(arguments.overrides);
  const Option steps = command.option("--steps A..B", arguments.steps,
                                      "Steps to audit: A..B, or one step (default: all)");
  const Option sample = command
                            .number("--sample", arguments.sample, {1, 100'000},
                                    "Audit N stretches at random places instead")
                            .excludes(steps);
  command
      .number("--length", arguments.length, {1, std::int64_t{1} << 40},
              "Length in steps of a stretch of --sample (default: 5)")
      .needs(sample);
  command
      .number("--seed", arguments.seed, {0},
              "Seed of --sample: the same seed chooses the same stretches")
      .needs(sample);
  command.option("--checkpoints DIR", arguments.checkpoints,
                 "Folder that holds step{N} (default: where they were saved, else beside the "
                 "database)");
  command.option("--data DIR", arguments.data,
                 "Folder that holds the token files (default: where the run read them)");
  command.isa_device_threads(arguments.policy);
  Option trace = command.flag("--trace", arguments.trace,
                              "Hash the output of every operation of the audited steps");
  const Option record = command.flag("--record", arguments.record,
                                     "Write the result, and any traces, into the run's database");
  trace.needs(record);
  command
      .run(arguments.against, "--against RUN",
           "Compare the traces of both runs instead; nothing is computed")
      .excludes(steps)
      .excludes(sample)
      .excludes(record);
  command.json(arguments.json);
  command.footer(
      "key.path=value may set paths of this machine, and nothing that changes the training.\n"
      "Starts from the latest recorded checkpoint before the steps, else from the initial weights. "
      "Under `portable` every bit must agree, on any machine; under `fast` the record must lie "
      "within four times the distance that `fast` has from `portable` on this machine. Exit code 5 "
      "if something differs: the step, what differs, and the first operation are named.\n"
      "Examples:\n"
      "  olmo-harness audit runs/quickstart --steps 21..30\n"
      "  olmo-harness audit run.db --sample 3 --checkpoints ckpt --data tokens --record\n"
      "  olmo-harness audit a.db --against b.db");
  command.action([&arguments] {
    arguments.command_line = command_line();
    return compute::audit(arguments);
  });
}

}  // namespace olmo::cli
