// `olmo-harness --version`: what this program is, what it reads and writes, and what it runs on.
#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/compute/compute.h"
#include "core/files/json.h"
#include "core/libraries/loaded_libraries.h"
#include "core/process/process.h"
#include "core/text/text.h"
#include "report/page/pages.h"
#include "store/checkpoint/checkpoint.h"
#include "store/database/schema.h"
#include "store/runs/provenance.h"

namespace olmo::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Libraries that results or files depend on, by their file's name. Those that only these need in
/// turn are left out.
constexpr std::array<std::string_view, 14> kShown = {
    "torch_cpu", "torch_cuda", "torch_hip", "hdf5_serial", "hdf5",     "sqlite3", "crypto",
    "yaml-cpp",  "zip",        "z",         "zstd",        "utf8proc", "gomp",    "omp"};

OrderedJson versions(std::int64_t newest) { return {{"reads", {1, newest}}, {"writes", newest}}; }

OrderedJson formats() {
  return {{"database", versions(store::kSchemaVersion)},
          {"checkpoint", versions(store::kCheckpointVersion)},
          {"hash_chain", versions(kChainFormat)},
          {"parity_report", {{"writes", report::kParitySchema}}},
          {"run_report", {{"writes", report::kRunSchema}}}};
}

/// {"NAME": {"version", "path"}}. Where a library tells its version itself, that is taken; the name
/// of its file often has another number, the interface's.
OrderedJson libraries() {
  const Json told = store::build_json();
  OrderedJson shown = OrderedJson::object();
  const auto add = [&](const std::string& name, const std::string& version) {
    shown[name]["version"] = version;
  };
  if (const auto libtorch = compute::libtorch()) add("libtorch", *libtorch);
  for (const char* name : {"hdf5", "sqlite"}) add(name, told.at(name));
  for (const auto& library : loaded_libraries()) {
    if (std::ranges::find(kShown, library.name) == kShown.end()) continue;
    std::string name = library.name;
    if (name == "torch_cpu") name = "libtorch";
    if (name == "hdf5_serial") name = "hdf5";
    if (name == "sqlite3") name = "sqlite";
    if (!shown.contains(name)) add(name, library.version);
    shown[name]["path"] = replace_bad_utf8(library.path.string());
  }
  return shown;
}

OrderedJson version_json() {
  const BuildInfo& info = build_info();
  return {{"version", info.version},
          {"git_revision", info.git_revision},
          {"commit_date", info.commit_date},
          {"build_type", info.flags.substr(0, info.flags.find(' '))},
          {"compiler", info.compiler},
          {"flags", info.flags},
          {"built_for_libtorch", info.libtorch},
          {"formats", formats()},
          {"libraries", libraries()}};
}

std::string version_text() {
  const OrderedJson facts = version_json();
  const auto text = [](const OrderedJson& value) { return value.get<std::string>(); };
  std::string out = version_line() + "\n";
  const auto line = [&out](std::string name, const std::string& what) {
    name.resize(std::max<std::size_t>(name.size() + 1, 16), ' ');
    out += "  " + name + what + "\n";
  };
  line("build", text(facts["build_type"]) + ", " + text(facts["compiler"]) + ", for LibTorch " +
                    text(facts["built_for_libtorch"]));
  for (const auto& [name, format] : facts["formats"].items()) {
    const auto writes = format["writes"];
    std::string says =
        writes.is_string() ? "writes " + text(writes) : "reads and writes version " + writes.dump();
    if (format.contains("reads") && format["reads"][1] != format["reads"][0])
      says = "reads versions " + format["reads"][0].dump() + " to " + format["reads"][1].dump() +
             ", writes " + writes.dump();
    std::string label = name;
    std::ranges::replace(label, '_', ' ');
    line(label, says);
  }
  for (const auto& [name, library] : facts["libraries"].items())
    line(name,
         text(library["version"]) + (library.contains("path") ? "  " + text(library["path"]) : ""));
  return out;
}

}  // namespace

std::optional<std::string> version_reference(const std::vector<std::string>& words) {
  if (words.empty() || words.size() > 2) return std::nullopt;
  const bool asks = std::ranges::find(words, "--version") != words.end();
  if (asks && words.size() == 1) return version_text();
  if (asks && std::ranges::find(words, "--json") != words.end())
    return json_text(version_json(), 2) + "\n";
  return std::nullopt;
}

}  // namespace olmo::cli
