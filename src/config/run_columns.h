// What a run's record states beside its config, and what the config says of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace olmo::config {

struct RunColumns {
  std::uint64_t seed = 0;
  std::int64_t n_parameters = 0;
  std::int64_t tokens_per_step = 0;
  /// Of a training that begins at step 0; nothing: its data decide it.
  std::optional<std::int64_t> max_steps;
};

/// Nothing for a config that this program cannot read.
std::optional<RunColumns> run_columns(const std::string& recorded);

}  // namespace olmo::config
