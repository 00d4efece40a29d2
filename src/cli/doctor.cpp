#include "cli/commands.h"
#include "cli/compute/compute.h"

namespace olmo::cli {

void add_doctor(const Command& program, const char* group) {
  const Command command = program.add(
      "doctor",
      "Show what this machine has and lacks, and check that it computes the same bits in every way",
      group);
  auto& json = command.options<bool>();
  command.json(json);
  command.footer(
      "Takes a few seconds. Exits 5 if the instruction sets and thread counts of this machine do "
      "not agree.\nExample: olmo-harness doctor --json");
  command.action([&json] { return compute::doctor(json); });
}

}  // namespace olmo::cli
