#include "config/run_columns.h"

#include <algorithm>

#include "config/train_config.h"
#include "core/error.h"

namespace olmo::config {

std::optional<RunColumns> run_columns(const std::string& recorded) {
  try {
    const TrainConfig config = parse_config(recorded, "config.json").config;
    RunColumns columns{.seed = config.seed,
                       .n_parameters = model::count_parameters(config.model).total,
                       .tokens_per_step = config.tokens_per_step(),
                       .max_steps = {}};
    if (config.max_duration.unit != optim::Duration::Unit::kEpochs)
      columns.max_steps =
          optim::max_steps(config.max_duration, {.tokens_per_batch = columns.tokens_per_step});
    if (config.stop_at)
      columns.max_steps = columns.max_steps ? std::min(*columns.max_steps, *config.stop_at)
                                            : std::optional<std::int64_t>();
    return columns;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace olmo::config
