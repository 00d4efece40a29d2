#include "eval/definition_files.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/nearest.h"
#include "eval/embedded_definitions.h"

namespace olmo::eval {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders[] = {"suites", "tasks"};

DefinitionFile parse(const std::string& folder, const std::string& name, std::string origin,
                     fs::path parent, std::string_view text) {
  Json content =
      parse_strict_json(text, {.where = origin, .kind = ErrorKind::kUsage, .is_object = true});
  return {.folder = folder,
          .name = name,
          .origin = std::move(origin),
          .parent = std::move(parent),
          .content = std::move(content)};
}

}  // namespace

std::string DefinitionFile::kind() const {
  const Json kind = content->value("kind", Json());
  if (!kind.is_string()) throw Error(ErrorKind::kUsage, origin + ": `kind` is missing");
  return kind.get<std::string>();
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
    files[{where, name}] = parse(where, name, path.string(), path.parent_path(), read_file(path));
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

}  // namespace olmo::eval
