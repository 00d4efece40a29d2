// Whether the records of runs are to be believed. A check reads a whole run, so a thread makes it
// in the background, of one run after the other; pages show what is known by then.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "report/record/record_check.h"
#include "serve/stamp.h"

namespace olmo::serve {

class KnownRecords {
 public:
  /// `stays_fresh`: a run is not read again within this time, nor within twenty times what reading
  /// it took, for a run that goes on changes always.
  explicit KnownRecords(std::chrono::milliseconds stays_fresh = std::chrono::minutes(1))
      : stays_fresh_(stays_fresh), thread_([this] { work(); }) {}
  /// Waits for the run that is being read.
  ~KnownRecords();
  KnownRecords(const KnownRecords&) = delete;
  KnownRecords& operator=(const KnownRecords&) = delete;

  /// What was found when the run was last read. `stamp`: of its database now; if that has changed
  /// since, the run is read anew. Waits for nothing; may be called by several threads.
  report::RecordCheck of(const std::filesystem::path& database, const std::string& run_id,
                         const Stamp& stamp);

 private:
  using Clock = std::chrono::steady_clock;
  using Place = std::pair<std::filesystem::path, std::string>;
  struct Known {
    Stamp stamp = {};
    report::RecordCheck check = {.reason = "is being checked"};
    Clock::time_point due = {};  ///< before which it is not read again
    bool waits = false;
  };
  void work();

  std::chrono::milliseconds stays_fresh_;
  std::mutex mutex_;  ///< of all that follows
  std::condition_variable changed_;
  std::map<Place, Known> known_;
  std::deque<Place> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace olmo::serve
