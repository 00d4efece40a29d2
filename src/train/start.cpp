#include "train/start.h"

#include "core/error.h"
#include "models/read_weights.h"

namespace olmo::train {

Start read_start(const std::filesystem::path& checkpoint) {
  Start start{checkpoint, store::read_checkpoint(checkpoint), {}};
  if (start.contents.kind != store::CheckpointKind::kFull) {
    throw Error(ErrorKind::kUsage,
                checkpoint.string() +
                    ": holds weights only; start from it with load_weights=" + checkpoint.string());
  }
  start.saved = read_state(*start.contents.trainer, checkpoint.string());
  return start;
}

optim::OptimState optim_state_of(const Start& start) {
  return {start.contents.optim, read_limits(*start.contents.optim_state, start.path.string())};
}

void set_weights(const model::Olmo& model, const config::TrainConfig& config,
                 const std::optional<Start>& start) {
  if (start) {
    model.load_weights(start->contents.model);
  } else if (config.load_weights) {
    model.load_weights(models::read_weights(*config.load_weights, config.model));
  } else {
    model.init_weights(config.seed);
  }
}

}  // namespace olmo::train
