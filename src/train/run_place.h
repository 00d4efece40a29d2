// Where a training run puts what it makes.
#pragma once

#include <filesystem>
#include <string>

#include "store/run_db.h"
#include "store/run_lock.h"

namespace olmo::train {

struct RunPlace {
  std::filesystem::path run_dir;
  const store::RunLock& lock;  ///< of `run_dir`; without it nothing is saved any more
  store::RunDb& db;

  /// Logs and records a warning.
  void warn(std::int64_t step, const std::string& text) const;
  /// Names the newest whole checkpoint, or says that there is none.
  [[nodiscard]] std::string last_checkpoint() const;
};

}  // namespace olmo::train
