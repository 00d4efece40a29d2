#include "cli/given_path.h"

#include <algorithm>
#include <fstream>

#include "core/error.h"
#include "core/files/input_file.h"
#include "store/checkpoint/checkpoint_manifest.h"
#include "store/foreign/find_weights.h"
#include "store/run_files.h"
#include "store/runs/run_db.h"

namespace olmo::cli {

namespace {

namespace fs = std::filesystem;

enum class Kind {
  kUnknown,
  kRunFolder,
  kCheckpoint,
  kWeights,  ///< of other software
  kDatabase,
  kTokens,
  kConfig,
  kText,
  kFolderOfRuns,
};

struct KindWords {
  Kind kind;
  const char* is;
  const char* takers;
};

constexpr KindWords kWords[] = {
    {Kind::kRunFolder, "a run folder", "runs, report, audit, eval and checkpoint take it"},
    {Kind::kCheckpoint, "a checkpoint",
     "eval, checkpoint, and train with load_weights= or --resume take it"},
    {Kind::kWeights, "a model of other software",
     "eval, checkpoint import, and train with load_weights= take it"},
    {Kind::kDatabase, "a database", "runs, report, audit and eval show|diff|--rescore take it"},
    {Kind::kTokens, "a token file",
     "data inspect, data stats, and train with data.paths=[…] take it"},
    {Kind::kConfig, "a config", "train and data inspect take it"},
    {Kind::kText, "a text file", "data tokenize, runs import and eval --perplexity take it"},
    {Kind::kFolderOfRuns, "a folder of run folders", "name one of them"},
};

constexpr char kCheckpointWords[] =
    "a checkpoint: a checkpoint or run folder, or a folder with config.json and safetensors";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_run_folder(const fs::path& folder) {
  if (is_file(folder / store::kRunDatabaseName)) return true;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_file(entry->path() / store::kManifestName) &&
        entry->path().filename().string().starts_with("step"))
      return true;
  }
  return false;
}

Kind kind_of_folder(const fs::path& folder) {
  if (is_file(folder / store::kManifestName)) return Kind::kCheckpoint;
  if (is_run_folder(folder)) return Kind::kRunFolder;
  if (store::holds_weights(folder) || is_file(folder / "config.json") ||
      is_file(folder / "config.yaml"))
    return Kind::kWeights;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_file(entry->path() / store::kRunDatabaseName)) return Kind::kFolderOfRuns;
  }
  return Kind::kUnknown;
}

Kind kind_of(const fs::path& path) {
  std::error_code ignored;
  if (!is_there(path)) return Kind::kUnknown;
  if (fs::is_directory(path, ignored)) return kind_of_folder(path);
  if (!is_file(path)) return Kind::kUnknown;
  if (is_database(path) || path.extension() == ".db") return Kind::kDatabase;
  if (path.filename() == store::kDataFileName || path.filename() == store::kManifestName)
    return Kind::kCheckpoint;
  const std::string extension = path.extension();
  const auto any = [&](std::initializer_list<const char*> names) {
    return std::ranges::find(names, extension) != names.end();
  };
  if (store::holds_weights(path)) return Kind::kWeights;
  if (extension == ".npy") return Kind::kTokens;
  if (any({".json", ".yaml", ".yml"})) return Kind::kConfig;
  if (any({".jsonl", ".csv", ".txt", ".gz", ".zst"})) return Kind::kText;
  return Kind::kUnknown;
}

/// A folder above that is a run's: "step20" lies in it, or "run.db".
std::string run_folder_above(const fs::path& path) {
  fs::path inner = fs::absolute(path).lexically_normal();
  if (!inner.has_filename()) inner = inner.parent_path();
  const fs::path folder = inner.parent_path();
  if (!is_run_folder(folder)) return {};
  const fs::path shown = fs::path(path).lexically_normal();
  const fs::path parent = (shown.has_filename() ? shown : shown.parent_path()).parent_path();
  return parent.empty() ? "." : parent.string();
}

void refuse(const std::string& command, const std::string& path, Kind kind,
            const std::string& expected, const std::string& instead) {
  for (const auto& words : kWords) {
    if (words.kind != kind) continue;
    throw Error(ErrorKind::kUsage,
                command + ": " + path + " is " + words.is + ", expected " + expected +
                    (instead.empty() ? "" : " (here " + instead + ")") + "; " + words.takers);
  }
}

}  // namespace

bool is_database(const fs::path& path) {
  if (!is_file(path)) return false;  // opening a pipe would wait for its writer
  constexpr std::string_view kMagic = "SQLite format 3";
  std::string magic(kMagic.size(), '\0');
  std::ifstream(path, std::ios::binary)
      .read(magic.data(), static_cast<std::streamsize>(magic.size()));
  return magic == kMagic;
}

bool is_checkpoint(const fs::path& folder) { return kind_of_folder(folder) == Kind::kCheckpoint; }

void require_run(const std::string& command, const std::string& path) {
  const std::string text = path.starts_with("./") ? path.substr(2) : path;
  std::error_code ignored;
  const fs::path file =
      fs::exists(path, ignored) ? fs::path(path) : store::parse_run_name(path).database;
  // A pipe or a device never becomes a run, so nobody shall wait for one.
  const fs::path database = store::parse_run_name(path).database;
  if (fs::exists(database, ignored) && !fs::is_directory(database, ignored))
    check_regular_file(database);
  const Kind kind = kind_of(file);
  if (kind == Kind::kRunFolder || kind == Kind::kDatabase || file.extension() == ".db") return;
  refuse(command, text, kind, std::string("a run: ") + kRunForms,
         kind == Kind::kCheckpoint ? run_folder_above(path) : std::string());
}

void require_checkpoint(const std::string& command, const std::string& path) {
  std::error_code ignored;
  const bool named = !fs::exists(path, ignored);  // FILE.db:RUN_ID
  const fs::path file = named ? store::parse_run_name(path).database : fs::path(path);
  const Kind kind = kind_of(file);
  if (kind == Kind::kRunFolder || kind == Kind::kWeights) return;
  if (kind == Kind::kCheckpoint && fs::is_directory(file, ignored)) return;
  refuse(command, path, kind, kCheckpointWords,
         kind == Kind::kDatabase || kind == Kind::kCheckpoint ? run_folder_above(file)
                                                              : std::string());
}

void require_own_checkpoint(const std::string& command, const std::string& path) {
  if (kind_of(path) != Kind::kWeights) return;
  refuse(command, path, Kind::kWeights, "a checkpoint or run folder of olmo-harness", "");
}

void require_config(const std::string& command, const std::string& path) {
  const Kind kind = kind_of(path);
  if (kind == Kind::kConfig) return;
  const std::string resume = kind == Kind::kRunFolder || kind == Kind::kCheckpoint
                                 ? "its config, and --run-dir " + path + " --resume latest to go on"
                                 : std::string();
  refuse(command, path, kind, "a config: a .json or .yaml file", resume);
}

}  // namespace olmo::cli
