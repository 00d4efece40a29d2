// The databases that a command which lists things was given, or that lie below given folders.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "store/database/record_database.h"

namespace olmo::cli {

/// What is said of the places that such a command takes.
inline constexpr char kPlacesHelp[] =
    "Run folders, run databases, or folders below which all of these are looked for";
inline constexpr char kUnreadableHelp[] =
    "What cannot be read is named, the rest is shown, and the exit code is 3, or 4 where a "
    "database is damaged.\n";

class GivenDatabases {
 public:
  /// Finds them. `command`: "runs list". Throws Error(kUsage) if a place is not there, or is known
  /// to be something else.
  GivenDatabases(const std::string& command, const std::vector<std::string>& places);

  /// Opens each to be read. What `visit` throws is kept, and the next one follows; a database that
  /// is gone by then is none. Throws the only failure if nothing could be read at all.
  void read(const std::function<void(store::RecordDatabase&)>& visit);

  /// What could not be read.
  [[nodiscard]] const std::vector<Error>& failures() const { return failures_; }
  [[nodiscard]] int exit_code() const;

 private:
  std::vector<std::filesystem::path> databases_;
  std::vector<Error> failures_;
};

/// The shortest words that name a database whose run or evaluation is the only one: of `run.db` its
/// folder.
std::string name_of_database(const std::filesystem::path& database);
/// One of several.
std::string name_of_record(const std::filesystem::path& database, const std::string& id);

}  // namespace olmo::cli
