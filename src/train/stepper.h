// The computation of a step: loss, gradients, update, and the row that they make.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "config/train_config.h"
#include "core/compute/named_tensors.h"
#include "core/compute/policy.h"
#include "core/hash.h"
#include "core/process/terminal.h"
#include "core/trace/op_trace.h"
#include "data/batch.h"
#include "dist/communicator.h"
#include "model/olmo.h"
#include "optim/lr_schedule.h"
#include "optim/optimizer.h"
#include "sharding/rank_units.h"
#include "store/runs/run_records.h"
#include "train/owned_tensors.h"
#include "train/state_tensors.h"

namespace olmo::train {

/// All that a resume needs beside weights, moments and the config.
struct TrainState {
  std::int64_t step = 0;  ///< finished steps
  std::int64_t tokens = 0;
  Digest chain;
  double min_loss = std::numeric_limits<double>::infinity();  ///< for early_stopping_factor

  /// Whether something that happens every `interval` steps, if ever, is due.
  [[nodiscard]] bool is_multiple_of(const std::optional<std::int64_t>& interval) const {
    return interval && *interval > 0 && step % *interval == 0;
  }
};

/// The loss of a step: sums over labels divided by instances × sequence length, nats.
struct StepLosses {
  double ce_loss = 0, ce_loss_per_label = 0;
  std::optional<double> z_loss;  ///< only with softmax_auxiliary_loss
  double loss = 0;
  Digest digest;  ///< of the sums of each micro-batch (losses_digest)
};

/// What a step is about to do to the weights.
struct StepGradients {
  data::Batch batch;                     ///< this rank's rows; the digest is that of all rows
  std::vector<std::uint32_t> instances;  ///< numbers, of the whole batch
  std::int64_t masked_instances = 0;     ///< of the whole batch
  StepLosses losses;
  optim::ClipPlan plan;

  /// False: the update would spoil the weights.
  [[nodiscard]] bool finite() const;
};

/// Which part of each parameter a rank's Stepper owns.
ParameterParts parts_of_rank(const config::TrainConfig& config, int rank, int ranks, int nodes);

/// The computation of a training, step by step: model, optimizer and data order. Writes nothing:
/// training records what comes back, an audit compares it with a record.
///
/// On W ranks each has a Stepper, and all call the same members in the same order, with a trace or
/// all without. Each step's row, hashes and trace are the same on every rank, and those of one
/// process: micro-batches are dealt round-robin, sums are made in the order of their numbers
/// (sharding/gradient_exchange.h), and the ranks tell each other the losses of theirs.
class Stepper {
 public:
  /// `batches` and the policy's mixed_precision: of the config.
  Stepper(config::TrainConfig config, const Policy& policy, data::BatchSource batches);
  /// As a rank of `ranks`, which must outlive it, on so many nodes. Collective. Throws
  /// Error(kUsage) if the config's sharding strategy cannot be had with them.
  Stepper(config::TrainConfig config, const Policy& policy, data::BatchSource batches,
          dist::Communicator& ranks, int nodes = 1);

  [[nodiscard]] const config::TrainConfig& config() const { return config_; }
  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] dist::Communicator& ranks() const { return units_.groups().world(); }
  /// The network over the weights of all ranks: where these are sharded, all run a pass at the same
  /// time, each over a batch of its own or none.
  [[nodiscard]] model::Olmo& model() { return model_; }
  [[nodiscard]] const model::Olmo& model() const { return model_; }
  [[nodiscard]] sharding::RankUnits& units() { return units_; }
  [[nodiscard]] const sharding::RankUnits& units() const { return units_; }
  [[nodiscard]] data::BatchSource& batches() { return batches_; }
  [[nodiscard]] const data::BatchSource& batches() const { return batches_; }
  [[nodiscard]] const TrainState& state() const { return state_; }
  [[nodiscard]] optim::Progress progress() const;
  [[nodiscard]] std::int64_t last_step() const;
  void note_loss(double ce_loss) { state_.min_loss = std::min(state_.min_loss, ce_loss); }

  /// What this rank has sent and waited for, of all its communicators.
  [[nodiscard]] dist::Traffic traffic() const { return units_.groups().traffic(); }

  /// What this rank owns of the parameters (in a world of one: the parameters), and of the
  /// optimizer's state.
  [[nodiscard]] NamedTensors parameters() const { return units_.owned_parameters(); }
  /// Which part of each parameter that is.
  [[nodiscard]] ParameterParts parameter_parts() const;
  [[nodiscard]] optim::OptimState optim_state() const { return optimizer_.state(); }
  /// Both, in the order of state_hashes().
  [[nodiscard]] std::vector<StateTensor> owned_state() const;

  /// Host memory that the first step writes and nothing has written before, in that order:
  /// activations, which are allocated here, gradients, moments.
  std::vector<std::span<std::byte>> reserve_memory();

  /// The weights before the first step: drawn, or copied from whole tensors. Collective.
  void init_weights() { units_.init_parameters(config_.seed); }
  void load_weights(const NamedTensors& whole) { units_.load_parameters(whole); }
  /// The same from what this rank owns, shaped as parameters().
  void load_owned_weights(const NamedTensors& owned);
  /// Starts at `state` instead of at step 0.
  void go_on_from(const TrainState& state) { state_ = state; }
  /// Moments that this rank owns, shaped as optim_state(), in place of none. Weights that were
  /// written into parameters() are made known by units().parameters_changed().
  void restore_owned(const optim::OptimState& owned);

  /// Reads this rank's rows of the next step's batch, which gradients() does where nobody has: what
  /// is wrong with them is known before any rank computes.
  void read_batch();
  /// The next step's loss and gradients; changes no weight. `trace` receives every operation.
  /// Collective.
  StepGradients gradients(OpTrace* trace = nullptr);
  /// Applies them and returns the step's row, whose times are the caller's to fill in. Collective.
  store::StepRecord update(const StepGradients& gradients, OpTrace* trace = nullptr);

  /// SHA-256 of every parameter and, after the first step, of every tensor of the optimizer.
  /// Collective.
  [[nodiscard]] std::vector<store::StateHash> state_hashes() const;

 private:
  /// `ranks`: if not `alone`.
  Stepper(config::TrainConfig config, const Policy& policy, data::BatchSource batches,
          std::unique_ptr<dist::Communicator> alone, dist::Communicator* ranks, int nodes);

  struct MicroBatch {
    double ce_sum = 0, z_sum = 0;
    std::int64_t labels = 0, masked_instances = 0;
  };
  /// Of this rank's micro-batches. A device may still be computing them.
  std::vector<ops::TokenLosses> forward_backward(const data::Batch& batch, OpTrace* trace);
  /// Waits for the device.
  [[nodiscard]] std::vector<MicroBatch> micro_batches_of(
      const data::Batch& batch, std::span<const ops::TokenLosses> losses) const;
  [[nodiscard]] Digest batch_digest_of(const data::Batch& mine) const;
  [[nodiscard]] StepLosses losses_of(const std::vector<MicroBatch>& micro_batches) const;
  [[nodiscard]] store::StepRecord row_of(const StepGradients& gradients, double lr) const;

  config::TrainConfig config_;
  Policy policy_;
  data::BatchSource batches_;
  std::optional<data::Batch> next_batch_;
  int nodes_;
  std::unique_ptr<dist::Communicator> alone_;  ///< of a process that is no rank of several
  sharding::RankUnits units_;
  model::Olmo model_;
  optim::Optimizer optimizer_;
  TrainState state_;
};

/// What a person sees of a step, of those from `first_step` to `last_step`.
Progress progress_of(const store::StepRecord& row, std::int64_t first_step, std::int64_t last_step);

}  // namespace olmo::train
