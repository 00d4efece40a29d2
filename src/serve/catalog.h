// Which runs there are below the folders that are served, found anew every few seconds while
// somebody looks. A database is read again only when its file has changed. Whatever a page shows is
// looked up here by a key, so no address can lead to another file.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "monitor/run_view.h"
#include "report/evaluations/evaluation_scores.h"
#include "serve/known_records.h"
#include "serve/known_seals.h"
#include "store/runs/run_db.h"
#include "store/runs/run_summary.h"

namespace olmo::serve {

struct RunEntry {
  /// What stands for the run in addresses: its id and a few digits of where it is, so that a copy
  /// has a key of its own.
  std::string key;
  std::filesystem::path database;
  std::string place;  ///< the database's path as the table shows it
  store::RunSummary summary;
  monitor::Judgement now = {};   ///< whether it goes on
  double unwritten_seconds = 0;  ///< since something was last written to the database
  report::RecordCheck record = {};

  [[nodiscard]] const std::string& name() const { return summary.run.name; }
  /// Its name, or its id where it has none.
  [[nodiscard]] const std::string& title() const {
    return name().empty() ? summary.run.run_id : name();
  }
  /// Its database, to be read by the thread that asks and closed soon. Throws as store::RunDb.
  [[nodiscard]] store::RunDb open() const;
};

/// An evaluation that belongs to no run of its database (serve/lone_evaluations.h).
struct LoneEvaluation {
  std::string key;  ///< as a run's
  std::filesystem::path database;
  std::string place;
  store::EvaluationEntry entry;  ///< without its long texts
  std::vector<report::Score> scores;
};

/// A database that cannot be read, and why.
struct BadDatabase {
  std::string key_end;  ///< of the keys of its runs
  std::string place;
  std::string sentence;
};

struct Listing {
  std::vector<RunEntry> runs;               ///< the latest first
  std::vector<LoneEvaluation> evaluations;  ///< the latest first
  std::int64_t older_evaluations = 0;       ///< that are only counted
  std::vector<BadDatabase> bad;
  std::vector<std::string> warnings;  ///< of folders that could not be looked into
  std::size_t databases = 0;          ///< that were found
  std::size_t read = 0;               ///< of them, so far

  [[nodiscard]] const RunEntry* find(const std::string& key) const;
  [[nodiscard]] const LoneEvaluation* find_evaluation(const std::string& key) const;
  /// Why neither is found.
  [[nodiscard]] std::string why_absent(const std::string& key) const;
};

class Catalog {
 public:
  /// Folders, or single databases.
  explicit Catalog(std::vector<std::filesystem::path> places);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  /// What is known, not older than a few seconds; waits at most so long for that. Then what is
  /// known so far: of many databases on a slow disk only some at first.
  [[nodiscard]] std::shared_ptr<const Listing> listing(
      std::chrono::milliseconds patience = std::chrono::milliseconds(700));
  /// The run with this key. Throws NotFound.
  [[nodiscard]] RunEntry run(const std::string& key);
  /// What is known now, or, where these keys are not all among it, as it is after another look.
  [[nodiscard]] std::shared_ptr<const Listing> listing_with(const std::vector<std::string>& keys);
  [[nodiscard]] const std::vector<std::filesystem::path>& places() const { return places_; }
  [[nodiscard]] KnownSeals& seals() { return seals_; }

 private:
  struct Known;
  struct Look;
  void look_on();
  void look();
  void read_some(Look& look);
  std::shared_ptr<const Known> read(const std::filesystem::path& path,
                                    const std::shared_ptr<const Known>& before) const;
  static std::shared_ptr<const Known> judged_again(const std::shared_ptr<const Known>& before);
  void publish(Look& look);

  std::vector<std::filesystem::path> places_;
  KnownSeals seals_;
  KnownRecords records_;
  std::map<std::filesystem::path, std::shared_ptr<const Known>> known_;  ///< of the thread

  std::mutex mutex_;  ///< of all that follows
  std::condition_variable changed_;
  std::shared_ptr<const Listing> listing_ = std::make_shared<Listing>();
  std::chrono::steady_clock::time_point asked_{};   ///< for the last time
  std::chrono::steady_clock::time_point looked_{};  ///< when the last whole look began
  std::chrono::steady_clock::duration interval_ = std::chrono::seconds(3);  ///< between looks
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace olmo::serve
