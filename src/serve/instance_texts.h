// The texts of recorded instances: rendered again from the data sets in the cache, and kept for the
// next page. Records hold hashes of the requests and no texts.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "eval/task.h"

namespace olmo::serve {

class InstanceTexts {
 public:
  struct Found {
    std::shared_ptr<const eval::LoadedTask> task;  ///< null: `problem` says why
    std::string problem;
  };
  /// The instances of a task; slow for the first time. One task at a time is rendered.
  Found find(const std::string& task, const std::string& convention);

 private:
  struct Kept {
    std::string name;
    Found found;
  };
  std::mutex mutex_;
  std::list<Kept> kept_;  ///< the one asked for last first
};

}  // namespace olmo::serve
