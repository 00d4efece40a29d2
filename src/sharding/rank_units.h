// The network's weights and gradients on one of W ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/compute/named_tensors.h"
#include "core/compute/policy.h"
#include "dist/communicator.h"
#include "model/units.h"
#include "sharding/gradient_exchange.h"
#include "sharding/model_layout.h"
#include "sharding/rank_groups.h"
#include "sharding/rank_weights.h"
#include "sharding/strategy.h"

namespace olmo::sharding {

/// What a rank holds of a model in training: it answers a pass (model/units.h), and keeps the
/// slices that the rank owns. Every rank makes the same passes in the same order, those without a
/// micro-batch with a model::PassWork that computes nothing.
///
/// One process is a world of one rank: its slices are the whole tensors, and nothing is copied.
class RankUnits final : public model::Units {
 public:
  /// Collective. `ranks` must outlive it. The weights are zeros.
  RankUnits(const model::ModelConfig& config, const Policy& policy, model::UnitMap map,
            dist::Communicator& ranks, const Strategy& strategy);

  [[nodiscard]] const ModelLayout& layout() const { return layout_; }
  [[nodiscard]] const RankGroups& groups() const { return groups_; }

  /// What this rank owns, in the model's order: of every parameter a flat fp32 view, without
  /// elements where it owns nothing; in a world of one the whole tensors.
  [[nodiscard]] NamedTensors owned_parameters() const;
  /// The same of the sums of gradients.
  [[nodiscard]] NamedTensors owned_gradients() const;
  /// The owned parameters have been written: every rank gets what it holds of other slices.
  /// Collective.
  void parameters_changed() {
    weights_.changed();
    weights_.settle();
  }
  /// The same after an update of the step whose passes have acquired every unit: the slices travel
  /// until the next pass wants them.
  void parameters_updated() { weights_.changed(); }

  /// Draws the owned parameters; then as parameters_changed().
  void init_parameters(std::uint64_t seed);
  /// Copies what is owned of whole tensors, strict as model::copy_tensors; then as
  /// parameters_changed().
  void load_parameters(const NamedTensors& whole);

  /// A round of micro-batches begins, whose gradients come next; the step's last one is over.
  void begin_round(const Round& round) { gradients_.begin(round); }
  void finish_rounds() { gradients_.finish(); }

  /// The sums of the squares of every whole parameter, or gradient, in the model's order, with the
  /// same bits on every rank. Collective.
  [[nodiscard]] std::vector<float> squares_of_parameters() const;
  [[nodiscard]] std::vector<float> squares_of_gradients() const;

  const model::ModelTensors& acquire(std::size_t unit, model::Pass pass) override {
    return weights_.acquire(unit, pass);
  }
  void release(std::size_t unit, model::Pass /*pass*/) override { weights_.release(unit); }
  const model::ModelTensors& gradients(std::size_t unit) override { return gradients_.leaf(unit); }
  void gradients_done(std::size_t unit) override { gradients_.done(unit); }

  [[nodiscard]] RankWeights::Bytes weight_bytes() const { return weights_.held_bytes(); }
  [[nodiscard]] GradientExchange::Bytes gradient_bytes() const { return gradients_.held_bytes(); }

 private:
  [[nodiscard]] std::vector<float> squares_of(const std::vector<at::Tensor>& slices) const;

  model::ModelConfig config_;
  Policy policy_;
  RankGroups groups_;
  ModelLayout layout_;
  RankWeights weights_;
  GradientExchange gradients_;
};

}  // namespace olmo::sharding
