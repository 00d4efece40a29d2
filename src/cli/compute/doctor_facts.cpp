#include "cli/compute/doctor_facts.h"

#include <chrono>
#include <cstdlib>

#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/screen/table.h"
#include "core/clock.h"
#include "core/compute/gpu_libraries.h"
#include "core/compute/libtorch.h"
#include "core/compute/machine.h"
#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/compute/tensor.h"
#include "core/environment_variable.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/files/output_file.h"
#include "core/hash.h"
#include "core/process/process.h"
#include "dist/launch.h"
#include "energy/channel.h"
#include "model/olmo.h"
#include "ops/optimizer_update.h"
#include "train/speed.h"

namespace olmo::cli::compute {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// The instruction sets that this machine has, the plainest first.
std::vector<Isa> machine_isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::kPlain, Isa::kAvx2, Isa::kAvx512})
    if (isa <= best_isa()) found.push_back(isa);
  return found;
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

OrderedJson limit_of(int resource, rlim_t rlimit::*kind) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return nullptr;
  return limit.*kind == RLIM_INFINITY ? OrderedJson(nullptr) : OrderedJson(limit.*kind);
}

struct NamedDigest {
  std::string name;
  std::string sha256;
};

std::string digest_of(const at::Tensor& tensor) { return sha256(host_bytes(tensor)).hex(); }

template <class T>
std::string digest_of(std::initializer_list<T> numbers) {
  return sha256(std::as_bytes(std::span(numbers))).hex();
}

model::ModelConfig small_config() {
  model::ModelConfig config;
  config.d_model = 48;
  config.n_heads = 3;
  config.n_layers = 2;
  config.mlp_ratio = 8;
  config.max_sequence_length = 24;
  config.vocab_size = 90;
  config.embedding_size = 96;
  config.eos_token_id = 89;
  config.pad_token_id = 1;
  return config;
}

/// One training step from the token ids to the updated weights: what each part of it gave.
std::vector<NamedDigest> step_digests(const Policy& policy) {
  apply_policy(policy);
  std::vector<NamedDigest> found;
  model::Olmo model(small_config(), policy);
  model.init_weights(6198);
  const auto ids = new_tensor({2, 24}, at::kLong);
  std::int64_t next = 0;
  for (auto& id : mutable_host_span<std::int64_t>(ids)) id = 37 * next++ % 89;
  const model::TokenBatch batch{ids, model::next_token_labels(ids)};
  model.forward(batch, [&](std::string_view point, const at::Tensor& x) {
    found.push_back({"forward " + std::string(point), digest_of(x)});
  });
  const auto gradients = model.make_gradients();
  const auto sums = model.forward_backward(batch, {1.0F / 46, 1e-4F}, gradients, false);
  found.push_back({"loss", digest_of({sums.ce_sum, sums.z_sum})});
  for (const auto& [name, gradient] : gradients)
    found.push_back({"gradient of " + name, digest_of(gradient)});
  found.push_back({"gradient norm", digest_of({ops::norm(policy, gradients)})});
  const ops::AdamWStep step{1.0F, 0.999F, 0.1F, 0.95F, 0.05F, 4.5F, 1e-8F, 1e-3F};
  std::vector<ops::AdamWUpdate> updates;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor& weight = model.parameters()[i].tensor;
    updates.push_back({step, gradients[i].tensor, weight, weight.new_zeros(weight.sizes()),
                       weight.new_zeros(weight.sizes())});
  }
  ops::adamw_update(policy, updates);
  for (const auto& [name, weight] : model.parameters())
    found.push_back({"update of " + name, digest_of(weight)});
  return found;
}

/// Calls work() until `seconds` have passed; the most that one call reached per second.
template <typename Work>
double best_rate(double seconds, const Work& work) {
  double best = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    const auto start = Clock::now();
    const double done = work();
    best = std::max(best, done / seconds_since(start));
  } while (Clock::now() < end);
  return best;
}

/// Bytes per second of copying, counting what is read and what is written.
double memory_rate() {
  constexpr std::int64_t kFloats = 16 << 20;  // twice 64 MB
  const at::Tensor from = new_tensor({kFloats}, at::kFloat).fill_(1);
  const at::Tensor to = from.new_zeros({kFloats});
  const auto target = mutable_host_span<float>(to);
  const auto source = host_span<float>(from);
  return best_rate(0.3, [&] {
    parallel_for(0, kFloats, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(target.data() + begin, source.data() + begin,
                  static_cast<std::size_t>(end - begin) * sizeof(float));
    });
    return 2.0 * kFloats * sizeof(float);
  });
}

/// Bytes per second of writing 32 MB to the current folder, until they are on the disk.
OrderedJson disk_rate() {
  const std::string bytes(32 << 20, 'x');
  const fs::path file = ".olmo-harness-doctor-" + std::to_string(::getpid());
  try {
    const auto start = Clock::now();
    write_file_atomically(file, bytes);
    const double seconds = seconds_since(start);
    fs::remove(file);
    return static_cast<double>(bytes.size()) / seconds / 1e6;
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

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
          {"default_threads", facts.value("default_threads", 0)},
          {"default_threads_by", facts.value("default_threads_by", "")},
          {"isas", isas},
          {"caches", caches}};
}

OrderedJson memory_facts() {
  const MachineMemory memory = machine_memory();
  return {{"total_bytes", or_null(memory.total)},
          {"available_bytes", or_null(memory.available)},
          {"cgroup_limit_bytes", or_null(memory.limit)}};
}

OrderedJson gpu_facts() {
  OrderedJson libraries = OrderedJson::array();
  for (const Device device : {Device::kCuda, Device::kRocm}) {
    for (const auto& need : gpu_needs(device, gpu_library_folder())) {
      libraries.push_back({{"device", to_string(device)},
                           {"name", need.name},
                           {"for", need.what},
                           {"found", need.problem.empty()},
                           {"problem", need.problem},
                           {"note", need.note},
                           {"command", need.remedy}});
    }
  }
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
  return {{"open_files", limit_of(RLIMIT_NOFILE, &rlimit::rlim_max)},
          {"file_bytes", limit_of(RLIMIT_FSIZE, &rlimit::rlim_cur)},
          {"cores_restricted", cores.bound_to < facts.value("cores_online", 0)},
          {"cgroup_cpus", or_null(cores.granted)},
          {"thread_variables", variables}};
}

OrderedJson launch_facts() {
  try {
    const auto launch = dist::read_launch(environment_entry);
    const auto text_or_null = [](const std::string& text) {
      return text.empty() ? OrderedJson() : OrderedJson(text);
    };
    return {{"how", launch.how},
            {"rank", launch.rank},
            {"size", launch.size},
            {"meet_at", launch.size > 1 ? OrderedJson(to_string(launch.rendezvous)) : nullptr},
            {"note", text_or_null(launch.note)}};
  } catch (const Error& error) {
    return {{"problem", error.what()}};
  }
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
          {"libtorch", libtorch_folder().string()},
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
    add("open files", "each rank of a training has a connection with every other one",
        "ask for a higher hard limit (`ulimit -Hn` shows it)");
  for (const auto& library : facts["gpus"]["libraries"]) {
    const bool cuda = library["device"] == to_string(Device::kCuda);
    if (library["found"].get<bool>()) continue;
    if (facts["gpus"]["on_bus"][cuda ? "nvidia" : "amd"].get<int>() == 0) continue;
    add(text_of(library["name"]),
        std::string(cuda ? "an NVIDIA" : "an AMD") + " GPU is here, but " +
            text_of(library["for"]) + " cannot be used: " + text_of(library["problem"]),
        text_of(library["command"]));
  }
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

OrderedJson self_check() {
  OrderedJson ways = OrderedJson::array();
  std::vector<NamedDigest> first;
  std::vector<bool> same;
  for (const Isa isa : machine_isas()) {
    for (const int threads : {1, 3}) {
      Policy policy = resolve_policy("portable", to_string(isa), threads);
      policy.operations_a_thread = 1;  // the training is small, and all threads shall have a share
      const auto found = step_digests(policy);
      ways.push_back(to_string(isa) + " on " + std::to_string(threads) +
                     (threads == 1 ? " thread" : " threads"));
      if (first.empty()) first = found, same.assign(found.size(), true);
      for (std::size_t i = 0; i < found.size(); ++i)
        if (found[i].sha256 != first[i].sha256) same[i] = false;
    }
  }
  OrderedJson operations = OrderedJson::array();
  for (std::size_t i = 0; i < first.size(); ++i) {
    operations.push_back(
        {{"name", first[i].name}, {"same", bool{same[i]}}, {"sha256", first[i].sha256}});
  }
  const bool all = std::ranges::find(same, false) == same.end();
  return {{"same", all}, {"ways", ways}, {"operations", operations}};
}

OrderedJson measured_limits(const Policy& policy) {
  apply_policy(policy);
  train::PeakFlops peak(policy);
  const double product = train::measure_product_flops(policy);
  peak.update(product);  // what a product reached is no more than the peak
  return {{"fma_gflops", *peak.value() / 1e9},
          {"product_gflops", product / 1e9},
          {"memory_gb_per_s", memory_rate() / 1e9},
          {"disk_mb_per_s", disk_rate()}};
}

}  // namespace olmo::cli::compute
