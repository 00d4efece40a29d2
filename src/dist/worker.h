// A thread for calls that may never return.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <thread>

namespace olmo::dist {

/// Runs tasks one after another in a thread of its own. The destructor waits for all of them,
/// unless abandon() was called.
class Worker {
 public:
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The future is ready when the task has ended, and holds what it threw. A task owns what it
  /// uses: it may outlive the worker.
  std::future<void> run(std::function<void()> task);

  /// The task that runs now may never end: the thread is left alone, and ends with it. Tasks behind
  /// it are dropped.
  void abandon();

 private:
  class Queue;
  std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

}  // namespace olmo::dist
