#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schedule.h"
#include "config/train_config.h"
#include "core/error.h"
#include "core/files/json.h"
#include "model/model_config.h"
#include "train/memory.h"
#include "train/preparation.h"
#include "train/speed.h"

namespace olmo::train {

/// Where a training goes on.
struct PlannedStart {
  config::CountedStep done;  ///< the last step that is behind it
  std::int64_t begin = 0;    ///< after which step its run began
};

/// What `train --dry-run` says about a run without starting it.
struct TrainPlan {
  struct Point {
    std::int64_t step = 0;
    std::int64_t tokens = 0;  ///< seen after this step
    double learning_rate = 0;
    std::optional<double> clip_limit;  ///< in force at this step, see optim/lr_schedule.h
  };

  config::LoadedConfig loaded;
  PlannedStart start;
  model::ParameterCount parameters;
  model::FlopsPerToken flops;
  MemoryPlan memory;
  std::int64_t tokens_per_step = 0;
  std::int64_t micro_batches = 0;               ///< of a step
  std::optional<std::int64_t> token_count;      ///< in the data, if its files could be read
  std::optional<std::int64_t> steps_per_epoch;  ///< follows from token_count
  std::optional<std::int64_t> steps;  ///< of the whole run; unknown for epochs of unknown data
  std::vector<Error> problems;  ///< that keep it from starting; kind: the exit code it would give
  std::optional<Needs> needs;   ///< if it was planned for this machine
  std::optional<StepTime> step_time;
  std::vector<Point>
      schedule;  ///< a dozen steps to come, first and last included; empty if `steps` is unknown

  /// Where the run ends: `steps`, or the config's stop_at; 0 if it is unknown.
  [[nodiscard]] std::int64_t last_step() const;
  /// How many there are after `start`: up to that one, and of the whole run; 0 if it is unknown.
  [[nodiscard]] std::int64_t steps_to_come() const;
  [[nodiscard]] std::int64_t steps_left() const;
  /// Tokens seen after a step to come.
  [[nodiscard]] std::int64_t tokens_at(std::int64_t step) const;
  /// Passes over the data that the steps after `start` make.
  [[nodiscard]] std::optional<double> epochs() const;
};

/// Plans the run of a config without unusable numbers (see validate). `instances`: sequences in the
/// data, `evaluators`: what they take, if known.
TrainPlan make_plan(const config::LoadedConfig& loaded, std::optional<std::int64_t> instances,
                    std::optional<evaluation::EvaluationMemory> evaluators = std::nullopt,
                    const PlannedStart& start = {});

/// The plan for a person, several paragraphs of text.
std::string to_text(const TrainPlan& plan);
Json to_json(const TrainPlan& plan);

}  // namespace olmo::train
