// The computation of a step: loss, gradients, update, and the row that they make.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "core/hash.h"
#include "core/named_tensors.h"
#include "core/op_trace.h"
#include "core/policy.h"
#include "core/terminal.h"
#include "data/batch.h"
#include "dist/communicator.h"
#include "model/olmo.h"
#include "optim/lr_schedule.h"
#include "optim/optimizer.h"
#include "store/run_records.h"

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

/// Adds the gradients of micro-batches 0..n-1 along one binary tree that depends on n alone:
/// neighbours are added as soon as both are there, as in a binary counter, and what is left at the
/// end from right to left. Holds at most floor(log2 n) + 1 gradient sets. A rank that owns an
/// interval of micro-batches can later add the nodes that lie in it.
class GradientTree {
 public:
  /// `total` is where the sum ends up; `make` gives further sets of the same tensors.
  GradientTree(Policy policy, NamedTensors total, std::function<NamedTensors()> make);

  /// Sets that a tree of so many micro-batches holds, the total included: one partial sum a level
  /// waits for its partner.
  static std::int64_t sets_for(std::int64_t micro_batches);
  /// Sets that it holds by now.
  [[nodiscard]] std::int64_t sets() const { return std::ssize(sets_); }

  /// The set into which the next micro-batch's gradient has to be written.
  const NamedTensors& leaf();
  /// The leaf has been written.
  void push();
  /// Every micro-batch has been pushed: their sum is in `total`, and the tree is empty again.
  void finish();

 private:
  void merge_last_two();

  Policy policy_;
  std::function<NamedTensors()> make_;
  std::vector<NamedTensors>
      sets_;                 ///< a stack of subtrees, the leftmost first; sets_[0] is `total`
  std::vector<int> levels_;  ///< height of each subtree on the stack
};

/// The computation of a training, step by step: model, optimizer and data order. Writes nothing:
/// training records what comes back, an audit compares it with a record.
class Stepper {
 public:
  /// `batches` and the policy's mixed_precision: of the config.
  Stepper(config::TrainConfig config, const Policy& policy, data::BatchSource batches);

  [[nodiscard]] const config::TrainConfig& config() const { return config_; }
  [[nodiscard]] model::Olmo& model() { return model_; }
  [[nodiscard]] const model::Olmo& model() const { return model_; }
  [[nodiscard]] data::BatchSource& batches() { return batches_; }
  [[nodiscard]] const data::BatchSource& batches() const { return batches_; }
  [[nodiscard]] const TrainState& state() const { return state_; }
  [[nodiscard]] optim::OptimState optim_state() const { return optimizer_.state(); }
  /// Of the size of all weights, that it holds by now.
  [[nodiscard]] std::int64_t gradient_sets() const { return tree_.sets(); }
  [[nodiscard]] optim::Progress progress() const;
  [[nodiscard]] std::int64_t last_step() const;
  void note_loss(double ce_loss) { state_.min_loss = std::min(state_.min_loss, ce_loss); }

  /// What this rank has sent and waited for, of all its communicators.
  [[nodiscard]] dist::Traffic traffic() const { return {}; }

  /// Starts at `state` instead of at step 0; the weights are already the model's.
  void restore(const TrainState& state, const optim::OptimState& optim);

  /// Reads the batch of the next step, which gradients() does where nobody has: what is wrong with
  /// it is known before any rank computes.
  void read_batch();
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
  std::optional<data::Batch> next_batch_;
  model::Olmo model_;
  NamedTensors gradients_;
  optim::Optimizer optimizer_;
  GradientTree tree_;
  TrainState state_;
};

/// SHA-256 of every tensor's bytes, so that a difference has a name; several tensors at once.
std::vector<store::StateHash> hash_tensors(const Policy& policy, const std::string& part,
                                           const NamedTensors& tensors);

/// What a person sees of a step, of those from `first_step` to `last_step`.
Progress progress_of(const store::StepRecord& row, std::int64_t first_step, std::int64_t last_step);

}  // namespace olmo::train
