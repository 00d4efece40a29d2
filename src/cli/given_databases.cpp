#include "cli/given_databases.h"

#include <algorithm>

#include "cli/given_path.h"
#include "store/run_files.h"
#include "store/runs/find_runs.h"
#include "store/runs/run_db.h"

namespace olmo::cli {
namespace {

namespace fs = std::filesystem;

fs::path place_of(const std::string& command, const std::string& text) {
  std::error_code none;  // a text that cannot be a path names nothing
  if (fs::is_directory(text, none) && !is_checkpoint(text)) return text;
  require_run(command, text);
  fs::path database = store::parse_run_name(text).database;
  if (!fs::exists(database, none))
    throw Error(ErrorKind::kUsage, text + ": there is no such folder or run database");
  return database;
}

}  // namespace

GivenDatabases::GivenDatabases(const std::string& command, const std::vector<std::string>& places) {
  std::vector<fs::path> found_at;
  for (const auto& text : places) found_at.push_back(place_of(command, text));
  auto found = store::find_databases(found_at);
  for (const auto& warning : found.warnings) failures_.emplace_back(ErrorKind::kInput, warning);
  databases_ = std::move(found.databases);
}

void GivenDatabases::read(const std::function<void(store::RecordDatabase&)>& visit) {
  bool any = false;
  for (const auto& database : databases_) {
    try {
      store::RecordDatabase records(database, store::OpenMode::kReadOnly);
      visit(records);
      any = true;
    } catch (const Error& error) {
      std::error_code none;
      if (fs::exists(database, none)) failures_.push_back(error);
    }
  }
  // What was asked for by name and cannot be shown at all is an error as in any other command.
  if (!any && failures_.size() == 1) throw failures_.front();
}

std::string name_of_database(const fs::path& database) {
  const bool of_folder =
      database.filename() == store::kRunDatabaseName && database.has_parent_path();
  return (of_folder ? database.parent_path() : database).string();
}

std::string name_of_record(const fs::path& database, const std::string& id) {
  return name_of_database(database) + ":" + id;
}

int GivenDatabases::exit_code() const {
  const bool damaged = std::ranges::any_of(
      failures_, [](const Error& error) { return error.kind() == ErrorKind::kDamaged; });
  if (damaged) return static_cast<int>(ErrorKind::kDamaged);
  return failures_.empty() ? 0 : static_cast<int>(ErrorKind::kInput);
}

}  // namespace olmo::cli
