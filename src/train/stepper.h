#pragma once

#include <limits>
#include <optional>

#include "config/train_config.h"
#include "core/hash.h"
#include "core/op_trace.h"
#include "data/batch.h"
#include "model/olmo.h"
#include "optim/duration.h"
#include "optim/optimizer.h"
#include "store/run_records.h"
#include "train/gradient_tree.h"

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
  data::Batch batch;
  StepLosses losses;
  optim::ClipPlan plan;

  /// False: the update would spoil the weights.
  [[nodiscard]] bool finite() const;
};

/// The computation of a training, step by step: model, optimizer and data order. Writes nothing:
/// training records what comes back, an audit compares it with a record.
class Stepper {
 public:
  /// `batches`: of the config.
  Stepper(config::TrainConfig config, const Policy& policy, data::BatchSource batches);

  [[nodiscard]] const config::TrainConfig& config() const { return config_; }
  [[nodiscard]] model::Olmo& model() { return model_; }
  [[nodiscard]] const model::Olmo& model() const { return model_; }
  [[nodiscard]] data::BatchSource& batches() { return batches_; }
  [[nodiscard]] const data::BatchSource& batches() const { return batches_; }
  [[nodiscard]] const TrainState& state() const { return state_; }
  [[nodiscard]] optim::OptimState optim_state() const { return optimizer_.state(); }
  [[nodiscard]] optim::Progress progress() const;
  [[nodiscard]] std::int64_t last_step() const;
  void note_loss(double ce_loss) { state_.min_loss = std::min(state_.min_loss, ce_loss); }

  /// Starts at `state` instead of at step 0; the weights are already the model's.
  void restore(const TrainState& state, const optim::OptimState& optim);

  /// The next step's loss and gradients; changes no weight. `trace` receives every operation.
  StepGradients gradients(OpTrace* trace = nullptr);
  /// Applies them and returns the step's row, whose times are the caller's to fill in.
  store::StepRecord update(const StepGradients& gradients, OpTrace* trace = nullptr);

  /// SHA-256 of every parameter and, after the first step, of every tensor of the optimizer.
  [[nodiscard]] std::vector<store::StateHash> state_hashes() const;

 private:
  StepLosses forward_backward(const data::Batch& batch, OpTrace* trace);
  [[nodiscard]] store::StepRecord row_of(const StepGradients& gradients, double lr) const;

  config::TrainConfig config_;
  Policy policy_;
  data::BatchSource batches_;
  model::Olmo model_;
  NamedTensors gradients_;
  optim::Optimizer optimizer_;
  GradientTree tree_;
  TrainState state_;
};

}  // namespace olmo::train
