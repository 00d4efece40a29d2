#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/compute/compute.h"
#include "cli/compute/doctor_facts.h"
#include "cli/interface/help.h"
#include "cli/screen/table.h"
#include "core/compute/libtorch.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "store/runs/provenance.h"

namespace olmo::cli::compute {
namespace {

OrderedJson policy_facts(const Policy& policy) {
  Policy fast = resolve_policy("fast", "auto", 1);
  fast.mixed_precision = MixedPrecision::kMixed;  // which takes the most libraries
  OrderedJson switches = OrderedJson::array();
  for (const auto& each : determinism_switches())
    switches.push_back({{"name", each.name}, {"value", each.value}, {"reason", each.reason}});
  return {{"portable", {{"isa", to_string(policy.isa)}, {"threads", policy.threads}}},
          {"fast", {{"matrix_library", matrix_library(fast)}, {"switches", switches}}}};
}

OrderedJson examine() {
  const Policy policy = resolve_policy("portable", "auto", 0);
  OrderedJson facts;
  facts["healthy"] = true;
  facts["build"] = OrderedJson(store::build_json());
  facts["processor"] = processor_facts();
  facts["memory"] = memory_facts();
  facts["gpus"] = gpu_facts();
  facts["policies"] = policy_facts(policy);
  facts["self_check"] = self_check();
  facts["measured"] = measured_limits(policy);
  facts["sensors"] = sensor_facts();
  facts["folders"] = folder_facts();
  facts["limits"] = limit_facts();
  facts["launch"] = launch_facts();
  facts["missing"] = missing_things(facts);
  facts["healthy"] = facts["self_check"]["same"];
  return facts;
}

std::string gigabytes(const OrderedJson& bytes) {
  if (!bytes.is_number()) return "no limit";
  return text_of(OrderedJson(bytes.get<double>() / 1e9)) + " GB";
}

std::string joined(const OrderedJson& words) {
  std::vector<std::string> texts;
  for (const auto& word : words) texts.push_back(text_of(word));
  return olmo::joined(texts);
}

/// A title, then lines of a name and what there is to say.
class Section {
 public:
  explicit Section(const std::string& title) { std::cout << "\n" << title << "\n"; }
  void line(const std::string& name, const std::string& text) const {
    std::string label = "  " + name;
    if (name.size() >= kLabel) {
      std::cout << label << "\n";
      label = "  ";
    }
    label.resize(kLabel + 2, ' ');
    std::cout << label
              << (columns_ ? wrapped(text, *columns_, kLabel + 2, display_width(label)) : text)
              << "\n";
  }

 private:
  static constexpr std::size_t kLabel = 22;
  std::optional<std::size_t> columns_ = terminal_width(STDOUT_FILENO);
};

/// What a training would be, as torchrun, srun or mpirun have set their variables.
std::string launch_text(const OrderedJson& launch) {
  if (launch.contains("problem")) return text_of(launch["problem"]);
  if (launch["size"] == 1)
    return "alone" + (launch["note"].is_null() ? "" : "; " + text_of(launch["note"]));
  return "rank " + text_of(launch["rank"]) + " of " + text_of(launch["size"]) + ", started by " +
         text_of(launch["how"]) + "; they meet at " + text_of(launch["meet_at"]);
}

void print_machine(const OrderedJson& facts) {
  const auto& processor = facts["processor"];
  const Section machine("Machine");
  machine.line("processor",
               text_of(processor["model"]) + " (" + text_of(processor["architecture"]) + ")");
  machine.line("cores", text_of(processor["cores_usable"]) + " usable of " +
                            text_of(processor["cores_online"]));
  machine.line("threads", text_of(processor["default_threads"]) + " by default (" +
                              text_of(processor["default_threads_by"]) + ")");
  machine.line("ranks", launch_text(facts["launch"]));
  std::string caches;
  for (const auto& cache : processor["caches"]) {
    caches += (caches.empty() ? "" : ", ") + text_of(cache["name"]) + " " +
              std::to_string(cache["bytes"].get<std::int64_t>() / 1024) + " KB";
  }
  machine.line("caches", caches);
  const auto& memory = facts["memory"];
  machine.line("memory",
               gigabytes(memory["total_bytes"]) + ", " + gigabytes(memory["available_bytes"]) +
                   " available; control group: " + gigabytes(memory["cgroup_limit_bytes"]));
  const auto& gpus = facts["gpus"];
  machine.line("GPUs on the bus", text_of(gpus["on_bus"]["nvidia"]) + " of NVIDIA, " +
                                      text_of(gpus["on_bus"]["amd"]) + " of AMD");
  for (const auto& library : gpus["libraries"]) {
    const auto name = text_of(library["name"]);
    const auto& note = library["note"];
    machine.line(text_of(library["device"]),
                 library["found"].get<bool>()
                     ? name + " is here: " + text_of(library["for"]) +
                           (note == "" ? "" : "; " + text_of(note))
                     : name + ": " + text_of(library["for"]) + " cannot be used: " +
                           text_of(library["problem"]) + " -> " + text_of(library["command"]));
  }
}

void print_numerics(const OrderedJson& facts) {
  const Section numerics("Numerics");
  const auto& portable = facts["policies"]["portable"];
  numerics.line("portable", "isa " + text_of(portable["isa"]) + " of " +
                                joined(facts["processor"]["isas"]) + "; " +
                                text_of(portable["threads"]) + " threads");
  numerics.line("fast", text_of(facts["policies"]["fast"]["matrix_library"]));
  const auto& check = facts["self_check"];
  if (check["same"].get<bool>()) {
    numerics.line("self-check", "the same bits in " + std::to_string(check["operations"].size()) +
                                    " results of a training step by: " + joined(check["ways"]));
    return;
  }
  for (const auto& operation : check["operations"]) {
    if (operation["same"].get<bool>()) continue;
    numerics.line("self-check FAILED",
                  text_of(operation["name"]) +
                      " is the first result that is not the same by: " + joined(check["ways"]));
    return;
  }
}

void print_speed(const OrderedJson& facts) {
  const auto& measured = facts["measured"];
  const Section speed("Measured, briefly");
  speed.line("multiply-adds", text_of(measured["fma_gflops"]) + " GFLOP/s at most");
  speed.line("matrix product", text_of(measured["product_gflops"]) + " GFLOP/s");
  speed.line("memory", text_of(measured["memory_gb_per_s"]) + " GB/s copied");
  speed.line("this folder's disk", measured["disk_mb_per_s"].is_null()
                                       ? "cannot be written"
                                       : text_of(measured["disk_mb_per_s"]) + " MB/s, synced");
}

void print_surroundings(const OrderedJson& facts) {
  const Section energy("Energy sensors that a training reads");
  for (const auto& sensor : facts["sensors"]) {
    energy.line(text_of(sensor["source"]) + " " + text_of(sensor["device"]),
                (sensor["readable"].get<bool>() ? "" : "none: ") + text_of(sensor["note"]));
  }
  const auto& folders = facts["folders"];
  const Section places("Folders and limits");
  places.line("cache",
              text_of(folders["cache"]) +
                  (folders["evaluation_data"].get<bool>() ? "" : " (without evaluation data)"));
  places.line("LibTorch", text_of(folders["libtorch"]));
  places.line("here",
              text_of(folders["current"]) + ", free: " + gigabytes(folders["current_free_bytes"]));
  const auto& limits = facts["limits"];
  const auto or_none = [](const OrderedJson& value) {
    return value.is_null() ? std::string("no limit") : text_of(value);
  };
  places.line("open files", or_none(limits["open_files"]));
  places.line("processors", limits["cores_restricted"].get<bool>()
                                ? "this process is bound to some of the cores"
                                : "all cores; control group: " + or_none(limits["cgroup_cpus"]));
  for (const auto& [name, value] : limits["thread_variables"].items())
    places.line(name, text_of(value));
}

void print(const OrderedJson& facts) {
  const auto& build = facts["build"];
  std::cout << "olmo-harness " << text_of(build["version"]) << " ("
            << text_of(build["git_revision"]) << "), " << text_of(build["compiler"]) << "\n";
  const Section libraries("Libraries");
  for (const auto& [name, version] : build.items()) {
    if (name != "version" && name != "git_revision" && name != "compiler")
      libraries.line(name, text_of(version));
  }
  print_machine(facts);
  print_numerics(facts);
  print_speed(facts);
  print_surroundings(facts);
  const Section missing("Missing");
  if (facts["missing"].empty()) std::cout << "  nothing\n";
  for (const auto& thing : facts["missing"]) {
    missing.line(text_of(thing["what"]), text_of(thing["why"]));
    missing.line("", "-> " + text_of(thing["command"]));
  }
}

}  // namespace

int doctor(bool json) {
  const OrderedJson facts = examine();
  if (json) {
    std::cout << json_text(facts, 2) << "\n";
  } else {
    print(facts);
  }
  return facts["healthy"].get<bool>() ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
}

}  // namespace olmo::cli::compute
