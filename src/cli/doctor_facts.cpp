#include <cctype>
#include <fstream>
#include <thread>

#include <dlfcn.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/doctor_parts.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/machine.h"
#include "energy/channel.h"

namespace olmo::cli {
namespace {

namespace fs = std::filesystem;

/// The first line of a file of the kernel's; empty if there is none.
std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The number of graphics processors of a PCI vendor.
int on_bus(const std::string& vendor) {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator entry("/sys/bus/pci/devices", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto kind = first_line(entry->path() / "class");
    const bool computes = kind.rfind("0x03", 0) == 0 || kind.rfind("0x12", 0) == 0;
    if (computes && first_line(entry->path() / "vendor") == vendor) ++count;
  }
  return count;
}

OrderedJson library_fact(const std::vector<std::string>& names, const std::string& purpose) {
  OrderedJson fact = {{"name", names.front()}, {"for", purpose}, {"found", false}, {"problem", ""}};
  for (const auto& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL); handle != nullptr) {
      ::dlclose(handle);
      return {{"name", name}, {"for", purpose}, {"found", true}, {"problem", ""}};
    }
    if (const char* problem = ::dlerror(); problem != nullptr) fact["problem"] = problem;
  }
  return fact;
}

OrderedJson resource_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return nullptr;
  return limit.rlim_cur == RLIM_INFINITY ? OrderedJson(nullptr) : OrderedJson(limit.rlim_cur);
}

}  // namespace

std::vector<Isa> machine_isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::kPlain, Isa::kAvx2, Isa::kAvx512})
    if (isa <= best_isa()) found.push_back(isa);
  return found;
}

OrderedJson processor_facts() {
  const Json facts = environment();
  OrderedJson caches = OrderedJson::array();
  for (const auto& [name, key] : {std::pair{"L1d", _SC_LEVEL1_DCACHE_SIZE},
                                  {"L2", _SC_LEVEL2_CACHE_SIZE},
                                  {"L3", _SC_LEVEL3_CACHE_SIZE}}) {
    if (const auto bytes = ::sysconf(key); bytes > 0)
      caches.push_back({{"name", name}, {"bytes", bytes}});
  }
  OrderedJson isas = OrderedJson::array();
  for (const Isa isa : machine_isas()) isas.push_back(to_string(isa));
  return {{"model", facts.value("cpu", "unknown")},
          {"architecture", facts.value("architecture", "unknown")},
          {"cores_online", facts.value("cores_online", 0)},
          {"cores_usable", facts.value("cores_usable", 0)},
          {"isas", isas},
          {"caches", caches}};
}

OrderedJson memory_facts() {
  const MachineMemory memory = machine_memory();
  const auto or_null = [](const std::optional<std::uint64_t>& bytes) {
    return bytes ? OrderedJson(*bytes) : OrderedJson(nullptr);
  };
  return {{"total_bytes", or_null(memory.total)},
          {"available_bytes", or_null(memory.available)},
          {"cgroup_limit_bytes", or_null(memory.limit)}};
}

OrderedJson gpu_facts() {
  OrderedJson libraries = {
      library_fact({"libcuda.so.1"}, "NVIDIA's driver"),
      library_fact({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, "NVIDIA's compiler"),
      library_fact({"libamdhip64.so", "/opt/rocm/lib/libamdhip64.so"}, "AMD's driver"),
      library_fact({"libhiprtc.so", "/opt/rocm/lib/libhiprtc.so"}, "AMD's compiler"),
  };
  return {{"on_bus", {{"nvidia", on_bus("0x10de")}, {"amd", on_bus("0x1002")}}},
          {"libraries", libraries}};
}

OrderedJson limit_facts() {
  const Json facts = environment();
  const UsableCores cores = usable_cores();
  OrderedJson variables = OrderedJson::object();
  for (const auto& [name, value] : facts.at("variables").items()) {
    if (name.rfind("OMP_", 0) == 0 || name.rfind("GOMP_", 0) == 0 || name.rfind("KMP_", 0) == 0 ||
        name.rfind("MKL_", 0) == 0)
      variables[name] = value.get<std::string>();
  }
  return {{"open_files", resource_limit(RLIMIT_NOFILE)},
          {"file_bytes", resource_limit(RLIMIT_FSIZE)},
          {"cores_restricted", cores.bound_to < facts.value("cores_online", 0)},
          {"cgroup_cpus", cores.granted ? OrderedJson(*cores.granted) : OrderedJson(nullptr)},
          {"thread_variables", variables}};
}

OrderedJson folder_facts() {
  std::string cache;
  try {
    cache = cache_directory().string();
  } catch (const Error&) {  // neither HOME nor another variable is set
  }
  std::error_code error;
  const auto here = fs::current_path(error);
  const auto space = fs::space(here, error);
  return {{"cache", cache},
          {"evaluation_data", !cache.empty() && fs::exists(fs::path(cache) / "data", error)},
          {"current", here.string()},
          {"current_free_bytes", error ? OrderedJson(nullptr) : OrderedJson(space.available)},
          {"current_writable", ::access(here.c_str(), W_OK) == 0}};
}

OrderedJson sensor_facts() {
  const energy::EnergySources sources;
  OrderedJson facts = OrderedJson::array();
  for (const auto open : energy::all_sensors()) {
    for (const auto& channel : open(sources)) {
      facts.push_back({{"source", channel.source},
                       {"device", channel.device},
                       {"readable", static_cast<bool>(channel.read)},
                       {"note", channel.note}});
    }
  }
  return facts;
}

OrderedJson missing_things(const OrderedJson& facts) {
  OrderedJson missing = OrderedJson::array();
  const auto add = [&](const std::string& what, const std::string& why,
                       const std::string& command) {
    missing.push_back({{"what", what}, {"why", why}, {"command", command}});
  };
  if (!facts["folders"]["evaluation_data"].get<bool>())
    add("evaluation data and tokenizers", "tasks and the tokenizers of OLMo come from there",
        "olmo-harness data fetch");
  if (!facts["folders"]["current_writable"].get<bool>())
    add("a writable current folder", "runs are written below it",
        "cd to another, or --run-dir DIR");
  const auto& files = facts["limits"]["open_files"];
  if (files.is_number() && files.get<double>() < 1024)
    add("open files", "large corpora have many token files", "ulimit -n 4096");
  const auto found = [&](std::size_t i) {
    return facts["gpus"]["libraries"][i]["found"].get<bool>();
  };
  if (facts["gpus"]["on_bus"]["nvidia"].get<int>() > 0) {
    if (!found(0))
      add("libcuda.so.1", "an NVIDIA GPU is here, its driver is not", "install NVIDIA's driver");
    if (!found(1))
      add("libnvrtc", "GPU kernels are compiled at run time",
          "python3 -m pip install nvidia-cuda-nvrtc");
  }
  if (facts["gpus"]["on_bus"]["amd"].get<int>() > 0 && (!found(2) || !found(3)))
    add("libamdhip64, libhiprtc", "an AMD GPU is here, ROCm is not",
        "install ROCm (or load its module)");
  bool measures = false;
  bool rapl_is_closed = false;
  for (const auto& sensor : facts["sensors"]) {
    measures = measures || sensor["readable"].get<bool>();
    rapl_is_closed =
        rapl_is_closed || (sensor["source"] == "rapl" && !sensor["readable"].get<bool>() &&
                           fs::exists("/sys/class/powercap/intel-rapl:0/energy_uj"));
  }
  if (!measures && rapl_is_closed)
    add("energy of the processor", "Linux lets only root read it",
        "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj");
  return missing;
}

}  // namespace olmo::cli
