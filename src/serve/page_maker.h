// Pages that take long to compute, made by a thread of their own, one after the other, and kept
// until what they show has changed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "serve/http.h"
#include "serve/stamp.h"

namespace olmo::serve {

class PageMaker {
 public:
  /// `stays_fresh`: a page of this age at most is not made again, whatever has changed.
  explicit PageMaker(std::chrono::seconds stays_fresh = std::chrono::seconds(30))
      : stays_fresh_(stays_fresh), thread_([this] { work(); }) {}
  /// Waits for the page that is being made.
  ~PageMaker();
  PageMaker(const PageMaker&) = delete;
  PageMaker& operator=(const PageMaker&) = delete;

  /// The page `name`, as it was last made, if the databases are as they were or it is still
  /// fresh (those of a run that goes on always change); else `make` makes it, and where that
  /// takes longer than `patience` the answer is a page that says so and asks again by itself.
  /// `what`: what is being made, a text. An Error of `make` is thrown here.
  Response page(const std::string& name, const std::string& what,
                const std::vector<std::filesystem::path>& databases,
                const std::function<Response()>& make,
                std::chrono::milliseconds patience = std::chrono::milliseconds(1500));

 private:
  using Clock = std::chrono::steady_clock;
  struct Page {
    std::function<Response()> make;
    std::vector<Stamp> stamps;
    bool done = false;
    Response response;
    std::exception_ptr error;
    Clock::time_point asked, ended;
  };
  void work();
  void forget_oldest();

  std::chrono::seconds stays_fresh_;
  std::mutex mutex_;  ///< of all that follows
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Page>> pages_;
  std::deque<std::shared_ptr<Page>> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace olmo::serve
