// What a run's record states beside its config, and what the config says of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "config/schedule.h"
#include "config/train_config.h"

namespace olmo::config {

struct RunColumns {
  std::uint64_t seed = 0;
  std::int64_t n_parameters = 0;
  std::int64_t tokens_per_step = 0;
  /// Of a training that begins at step 0; nothing: its data decide it.
  std::optional<std::int64_t> max_steps;
  TrainConfig config;
};

/// Nothing for a config that this program cannot read.
std::optional<RunColumns> run_columns(const std::string& recorded);
/// Why it cannot be read, on one line; empty: it can.
std::string why_unreadable(const std::string& recorded);

/// How an attempt with so many ranks shares the work: "single" for one rank, else as the config
/// names it, "ddp" or FSDP's sharding strategy.
std::string strategy_name(const TrainConfig& config, std::int64_t ranks);

/// Instances of token files of these sizes, in the order in which the config names them; nothing
/// for another number of files.
std::optional<std::int64_t> instances_of(const TrainConfig& config,
                                         std::span<const std::int64_t> bytes);

/// The learning rate of a step, in a training that began after step number `begin`.
/// `batches_per_epoch`: of a training whose length is given in epochs; nothing where it is needed
/// and not known.
std::optional<double> learning_rate_of(const TrainConfig& config, const CountedStep& at,
                                       std::optional<std::int64_t> batches_per_epoch,
                                       std::int64_t begin);

/// The limit on the norm of the gradients that a step clips with: the one that the step before set.
/// Nothing: no limit. Not of the first step after the checkpoint of another run, which brings its
/// own.
std::optional<double> max_grad_norm_of(const TrainConfig& config, const CountedStep& at);

/// The share of the gradients that a step clips; nothing under a limit on each gradient, where it
/// depends on the steps before.
std::optional<double> clipping_rate_of(const TrainConfig& config,
                                       std::optional<double> max_grad_norm, double grad_norm);

}  // namespace olmo::config
