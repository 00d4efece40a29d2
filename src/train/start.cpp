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

void begin_at(Stepper& stepper, const std::optional<Start>& start, bool with_state) {
  const config::TrainConfig& config = stepper.config();
  model::Olmo& model = stepper.model();
  if (start) {
    model.load_weights(start->contents.model);
  } else if (config.load_weights) {
    model.load_weights(models::read_weights(*config.load_weights, config.model));
  } else {
    model.init_weights(config.seed);
  }
  if (!start || !with_state) return;
  const auto limits = read_limits(*start->contents.optim_state, start->path.string());
  stepper.restore(start->saved.state, {start->contents.optim, limits});
}

}  // namespace olmo::train
