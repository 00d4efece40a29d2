#include "train/run_place.h"

#include "core/log.h"
#include "store/checkpoint_folder.h"

namespace olmo::train {

void RunPlace::warn(std::int64_t step, const std::string& text) const {
  log_warning(text);
  db.event(step, "warning", text);
}

std::string RunPlace::last_checkpoint() const {
  const auto there = store::list_checkpoints(run_dir);
  return there.empty() ? "no checkpoint had been saved"
                       : "the last checkpoint is " + there.back().path.string();
}

}  // namespace olmo::train
