#include "core/process/activity.h"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "core/clock.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"

namespace olmo {
namespace {

constexpr std::chrono::seconds kTick{1};       // on a terminal
constexpr std::chrono::seconds kReminder{30};  // elsewhere

/// A thread that no signal is delivered to: they are for those who work.
template <class Function>
std::thread thread_without_signals(Function run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(run));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Activity::~Activity() {
  done();
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Activity::now(const std::string& what) {
  if (!shown_) return;
  {
    const std::lock_guard lock(mutex_);
    erase();
    what_ = what;
    since_ = Clock::now();
    next_ = since_ + patience_;
  }
  if (!thread_.joinable()) thread_ = thread_without_signals([this] { watch(); });
  changed_.notify_one();
}

void Activity::done() {
  if (!shown_) return;
  const std::lock_guard lock(mutex_);
  erase();
  what_.clear();
}

void Activity::watch() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (what_.empty()) {
      changed_.wait(lock);
    } else if (changed_.wait_until(lock, next_) == std::cv_status::timeout && !what_.empty() &&
               Clock::now() >= next_) {
      say();
    }
  }
}

void Activity::say() {
  const auto columns = status_columns();
  const double seconds = seconds_since(since_);
  next_ = Clock::now() + (columns ? kTick : kReminder);
  if (!columns) {
    log_line(what_ + (seconds < 10 ? " ..." : " ... " + format_duration(seconds) + " so far"));
    return;
  }
  // A line that fills the last column leaves the cursor where terminals disagree.
  const std::size_t room = std::max<std::size_t>(*columns, 2) - 1;
  const std::string time = " ... " + format_duration(seconds);
  const std::string text = room > time.size()
                               ? shortened(safe_line(what_), room - time.size()) + time
                               : shortened(safe_line(what_), room);
  const std::string line = "\r" + text + "\x1b[K";
  std::fwrite(line.data(), 1, line.size(), stderr);
  stands_ = true;
}

void Activity::erase() {
  if (stands_) std::fputs("\r\x1b[K", stderr);
  stands_ = false;
}

}  // namespace olmo
