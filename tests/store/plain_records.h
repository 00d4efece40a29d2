// Records of which a test needs nothing but that they are there.
#pragma once

#include <string>

#include "store/runs/run_records.h"

namespace olmo::test {

inline store::RunRecord plain_run(const std::string& name = "run", std::int64_t max_steps = 100) {
  return {.name = name,
          .config = "{}",
          .experiment_digest = "experiment",
          .seed = 1,
          .n_parameters = 10,
          .max_steps = max_steps};
}

inline store::AttemptRecord plain_attempt(std::int64_t start_step = 0) {
  return {.start_step = start_step,
          .resumed_from = start_step > 0 ? "a checkpoint" : "",
          .command_line = "train",
          .policy = "{}",
          .build = "{}",
          .environment = "{}"};
}

}  // namespace olmo::test
