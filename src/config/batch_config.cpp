#include "config/batch_config.h"

namespace olmo::config {

data::BatchConfig batch_config(const TrainConfig& config) {
  return {.data = config.data,
          .seed = config.seed,
          .first_epoch = static_cast<std::uint64_t>(config.epoch.value_or(0)),
          .sequence_length = config.model.max_sequence_length,
          .global_batch_size = config.global_train_batch_size,
          .shuffle = config.data.shuffle,
          .vocab_size = static_cast<std::uint64_t>(config.model.embedding_rows()),
          .pad_token_id = config.model.pad_token_id};
}

}  // namespace olmo::config
