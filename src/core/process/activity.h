// What goes on in a long silence, said on stderr.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace olmo {

/// Says what goes on once it has lasted longer than a second. On a terminal one line that counts
/// the seconds and goes away with what it tells of; elsewhere a plain line, again after each half
/// minute. It has a thread of its own, since who works does not look at the clock. Not for use
/// while a ProgressLine is shown.
class Activity {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// `shown`: else nothing is ever said, as of ranks other than the first.
  explicit Activity(bool shown = true, Milliseconds patience = Milliseconds(1000))
      : shown_(shown), patience_(patience) {}
  /// As done().
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  /// From now on this goes on, and nothing else: "reading token files".
  void now(const std::string& what);
  /// Nothing goes on any more; other lines follow.
  void done();

 private:
  using Clock = std::chrono::steady_clock;

  void watch();
  /// Both hold the mutex.
  void say();
  void erase();

  const bool shown_;
  const Milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;  ///< empty: nothing goes on
  Clock::time_point since_, next_;
  bool stands_ = false;  ///< a line on the terminal
  bool ends_ = false;
  std::thread thread_;
};

/// What `work` returns, with an Activity while it runs.
template <class Work>
auto during(const std::string& what, const Work& work) {
  Activity activity;
  activity.now(what);
  return work();
}

}  // namespace olmo
