#include "eval/evaluation_files.h"

#include <set>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/text/text.h"
#include "data/public/fetch.h"

namespace olmo::eval {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders[] = {"suites", "tasks"};

DefinitionFile parse(const std::string& folder, const std::string& name, std::string origin,
                     fs::path parent, std::string_view text) {
  Json content =
      parse_strict_json(text, {.where = origin, .kind = ErrorKind::kUsage, .is_object = true});
  return {folder, name, std::move(origin), std::move(parent), std::move(content)};
}

/// A definition is a choice of the user's, as a config is, and no data.
std::string read_definition(const fs::path& path) {
  try {
    return read_file(path);
  } catch (const Error& error) {
    throw Error(ErrorKind::kUsage, error.what());
  }
}

constexpr std::string_view kTraining = "training:";

/// Of a data set: `datasets` also leaves cache-*.arrow beside them.
bool is_part(const fs::path& path) {
  return path.extension() == ".arrow" && path.filename().string().starts_with("data-");
}

}  // namespace

std::string DefinitionFile::kind() const {
  const Json kind = content->value("kind", Json());
  if (kind == "rank_classification" || kind == "perplexity") return kind.get<std::string>();
  if (!kind.is_null()) {
    throw Error(ErrorKind::kUsage, origin + ": `kind` is " + kind.dump() +
                                       ", expected rank_classification or perplexity");
  }
  const bool is_task = content->contains("source") || content->contains("requests");
  throw Error(ErrorKind::kUsage,
              origin + (is_task ? ": is a task's file, expected a suite's; saved as evals/tasks/" +
                                      name + ".json it is asked by its name, --tasks " + name
                                : ": `kind` is missing, expected rank_classification or "
                                  "perplexity"));
}

std::vector<DefinitionFile> read_definitions(const std::optional<fs::path>& folder,
                                             std::span<const fs::path> suite_files) {
  if (folder && !fs::is_directory(*folder)) {
    throw Error(ErrorKind::kUsage,
                folder->string() + ": is not a folder of evaluation definitions");
  }
  std::map<std::pair<std::string, std::string>, DefinitionFile> files;
  for (const auto& [where, name, text] : embedded_definitions()) {
    const std::string path = "evals/" + std::string(where) + "/" + std::string(name) + ".json";
    files[{std::string(where), std::string(name)}] =
        parse(std::string(where), std::string(name), path, {}, text);
  }
  const auto add = [&](const std::string& where, const fs::path& path) {
    const std::string name = path.stem().string();
    files[{where, name}] =
        parse(where, name, path.string(), path.parent_path(), read_definition(path));
  };
  for (const char* where : kFolders) {
    const fs::path parent = folder.value_or("evals") / where;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(parent, error)) {
      if (entry.path().extension() == ".json") add(where, entry.path());
    }
  }
  for (const auto& file : suite_files) add("suites", file);
  std::vector<DefinitionFile> sorted;
  for (auto& [key, file] : files) sorted.push_back(std::move(file));
  return sorted;
}

const DefinitionFile& find_suite(const std::vector<DefinitionFile>& definitions,
                                 std::string_view name, std::string_view kind) {
  std::vector<std::string> known;
  for (const auto& file : definitions) {
    if (file.folder != "suites") continue;
    const bool right = file.kind() == kind;
    if (file.name != name) {
      if (right) known.push_back(file.name);
      continue;
    }
    if (!right) {
      throw Error(ErrorKind::kUsage, file.origin + ": is a suite of kind " + file.kind() +
                                         ", expected " + std::string(kind));
    }
    return file;
  }
  const auto close = nearest(name, known);
  throw Error(ErrorKind::kUsage, "there is no suite `" + std::string(name) + "` of kind " +
                                     std::string(kind) +
                                     (close ? "; is `" + *close + "` meant?" : ""));
}

DataFiles::DataFiles(const fs::path& data_folder)
    : evaluation_(data::evaluation_data_folder(data_folder)),
      training_(data::training_records_folder(data_folder)) {
  if (!fs::is_directory(evaluation_) && fs::is_directory(data_folder))
    evaluation_ = training_ = data_folder;
}

DataFiles::Root& DataFiles::root(const fs::path& folder) {
  const auto [place, is_new] = roots_.try_emplace(folder, Root{.folder = folder, .files = Json()});
  if (!is_new) return place->second;
  if (folder.empty()) return place->second;
  Json manifest = data::read_manifest(folder);
  if (!manifest.is_null()) place->second.files = std::move(manifest["files"]);
  return place->second;
}

std::vector<fs::path> DataFiles::arrow_files(const Root& root, const fs::path& folder) {
  std::set<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_part(entry->path())) files.insert(entry->path());
  }
  if (error && is_there(folder))
    throw Error(ErrorKind::kInput, folder.string() + ": cannot be listed: " + error.message());
  if (!root.files->is_null()) {
    for (const auto& [name, facts] : root.files->items()) {
      const fs::path file = root.folder / name;
      if (is_part(file) && file.parent_path() == folder) files.insert(file);
    }
  }
  if (files.empty()) files.insert(folder);
  return {files.begin(), files.end()};
}

DataFile DataFiles::check(const Root& root, const fs::path& path) const {
  if (!is_there(path)) {
    const bool fetched =
        root.files->is_null() ||
        root.files->contains(path.lexically_relative(root.folder).generic_string());
    throw Error(ErrorKind::kInput, path.string() + ": is missing; " +
                                       (root.folder.empty() ? "its task names it"
                                        : fetched           ? "`olmo-harness data fetch` brings it"
                                                  : "`olmo-harness data fetch` does not bring it"));
  }
  if (fs::is_directory(path)) {
    throw Error(
        ErrorKind::kInput,
        path.string() + ": is a folder without files data-*.arrow, as `datasets` saves them");
  }
  DataFile file{.path = path, .digest = sha256_file(path)};
  if (root.files->is_null()) return file;
  const auto name = path.lexically_relative(root.folder).generic_string();
  const auto stated = root.files->find(name);
  if (stated == root.files->end()) {
    throw Error(ErrorKind::kInput, path.string() + ": is not listed in " +
                                       (root.folder / "manifest.json").string() +
                                       "; `olmo-harness data fetch --verify` restores the folder");
  }
  const auto size = fs::file_size(path);
  if ((*stated)["bytes"] != size || (*stated)["sha256"] != file.digest.hex()) {
    throw Error(ErrorKind::kInput, path.string() + ": was altered (" + std::to_string(size) +
                                       " bytes, SHA-256 " + file.digest.hex() +
                                       "); `olmo-harness data fetch --verify` restores it");
  }
  return file;
}

std::vector<DataFile> DataFiles::find(const std::string& source, bool requests,
                                      const fs::path& parent) {
  fs::path folder = evaluation_;
  std::string name = source;
  if (source.starts_with(kTraining)) {
    folder = training_;
    name = source.substr(kTraining.size());
  } else if (source.starts_with("/") || source.starts_with("./")) {
    folder.clear();
  }
  const Root& from = root(folder);
  fs::path path = (source.starts_with("./") ? parent : folder) / name;
  if (requests) path /= "requests.jsonl.gz";
  path = path.lexically_normal();
  std::vector<fs::path> paths = {path};
  if (!is_there(path) || fs::is_directory(path)) paths = arrow_files(from, path);
  std::vector<DataFile> files;
  for (const auto& one : paths) files.push_back(check(from, one));
  return files;
}

}  // namespace olmo::eval
