#include "dist/worker.h"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace olmo::dist {

class Worker::Queue {
 public:
  void push(std::packaged_task<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

  void stop(bool drop) {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      if (drop) tasks_.clear();
    }
    changed_.notify_one();
  }

  void run_tasks() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> tasks_;
  bool stopped_ = false;
};

Worker::Worker()
    : queue_(std::make_shared<Queue>()), thread_([queue = queue_] { queue->run_tasks(); }) {}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  queue_->stop(false);
  thread_.join();
}

std::future<void> Worker::run(std::function<void()> task) {
  std::packaged_task<void()> packaged(std::move(task));
  auto done = packaged.get_future();
  queue_->push(std::move(packaged));
  return done;
}

void Worker::abandon() {
  if (!thread_.joinable()) return;
  queue_->stop(true);
  thread_.detach();
}

}  // namespace olmo::dist
