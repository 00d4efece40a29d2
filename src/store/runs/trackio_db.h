// The database of a trackio project, which `runs export --to trackio` writes: a row of JSON a step.
// The tables are those of trackio 0.24 and later, which adds what else it needs when it opens the
// file.
#pragma once

#include <optional>

#include "store/database/sqlite.h"

namespace olmo::store {

class TrackioDb {
 public:
  /// Makes the file if there is none. Throws Error(kUsage) for a database of something else, which
  /// is left as it is, and as Database. Nothing of what follows is there before commit().
  explicit TrackioDb(const std::filesystem::path& path);
  /// Removes the file if it was made here and nothing was committed.
  ~TrackioDb();
  TrackioDb(const TrackioDb&) = delete;
  TrackioDb& operator=(const TrackioDb&) = delete;

  struct Run {
    std::string run_id, name;
    std::string config;   ///< JSON
    std::string created;  ///< ISO 8601
  };
  /// Begins a run in place of what the database has of it.
  void begin_run(Run run);
  /// `metrics`: a JSON object.
  void add_step(std::int64_t step, const std::string& time, const std::string& metrics);
  void commit();

 private:
  void require_trackio() const;

  bool is_new_;
  Database db_;
  std::optional<Transaction> transaction_;
  std::optional<Statement> insert_;
  Run run_;
};

}  // namespace olmo::store
