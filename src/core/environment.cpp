#include "core/environment.h"

#include <array>
#include <fstream>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/machine.h"

extern char** environ;

namespace olmo {
namespace {

/// The value of `key` in a file of lines "key<separator>value", unquoted; empty if there is none.
std::string value_in(const char* path, std::string_view key, char separator) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(separator);
    if (at == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    if (line.find_first_not_of(" \t", key.size()) != at) continue;
    auto value = line.substr(at + 1);
    value.erase(0, value.find_first_not_of(" \t\""));
    value.erase(value.find_last_not_of(" \t\"") + 1);
    return value;
  }
  return "";
}

/// Variables that can change what a run computes, how fast, or where it is.
bool is_relevant(std::string_view name) {
  constexpr std::array<std::string_view, 21> kPrefixes = {
      "OMP_",      "GOMP_",    "KMP_",   "MKL_",    "ATEN_",   "ONEDNN_", "DNNL_",
      "OPENBLAS_", "PYTORCH_", "TORCH_", "CUDA_",   "CUBLAS_", "NVIDIA_", "NCCL_",
      "RCCL_",     "ROCBLAS_", "HIP_",   "MIOPEN_", "HSA_",    "SLURM_",  "FI_"};
  constexpr std::array<std::string_view, 9> kNames = {
      "LD_LIBRARY_PATH", "LD_PRELOAD",  "RANK",           "LOCAL_RANK", "WORLD_SIZE",
      "MASTER_ADDR",     "MASTER_PORT", "GLIBC_TUNABLES", "MALLOC_CONF"};
  for (const auto prefix : kPrefixes) {
    if (name.substr(0, prefix.size()) == prefix) return true;
  }
  for (const auto known : kNames) {
    if (name == known) return true;
  }
  return false;
}

bool is_secret(std::string_view name) {
  for (const std::string_view word : {"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "JWT"}) {
    if (name.find(word) != std::string_view::npos) return true;
  }
  return false;
}

Json relevant_variables() {
  Json variables = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const auto name = text.substr(0, equals);
    if (!is_relevant(name)) continue;
    // A record is shared: what looks like a credential stays behind.
    variables[std::string(name)] =
        is_secret(name) ? std::string("(withheld)") : std::string(text.substr(equals + 1));
  }
  return variables;
}

}  // namespace

Json environment() {
  Json facts = Json::object();
  const auto set = [&](const char* key, const std::string& value) {
    if (!value.empty()) facts[key] = value;
  };
  utsname system{};
  if (::uname(&system) == 0) {
    facts["host"] = system.nodename;
    facts["kernel"] = std::string(system.sysname) + " " + system.release;
    facts["architecture"] = system.machine;
  }
  set("os", value_in("/etc/os-release", "PRETTY_NAME", '='));
  set("cpu", value_in("/proc/cpuinfo", "model name", ':'));
  set("cpu_flags", value_in("/proc/cpuinfo", "flags", ':'));
  facts["cores_online"] = ::sysconf(_SC_NPROCESSORS_ONLN);
  facts["cores_usable"] = usable_cores().usable;
  struct sysinfo memory {};
  if (::sysinfo(&memory) == 0)
    facts["memory_bytes"] = static_cast<std::uint64_t>(memory.totalram) * memory.mem_unit;
  facts["devices"] = Json::array({{{"kind", "cpu"}}});
  facts["pid"] = ::getpid();
  facts["variables"] = relevant_variables();
  return facts;
}

std::string shell_quoted(const std::string& word) {
  const bool plain =
      !word.empty() && word.find_first_of(" \t\n\"'\\$`*?[](){}<>|&;#~!") == std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string line;
  for (std::string word; std::getline(in, word, '\0');) {
    line += (line.empty() ? "" : " ") + shell_quoted(word);
  }
  return line;
}

}  // namespace olmo
