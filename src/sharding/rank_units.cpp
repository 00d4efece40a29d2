#include "sharding/rank_units.h"

#include "dist/exchange.h"
#include "ops/optimizer_update.h"

namespace olmo::sharding {

RankUnits::RankUnits(const model::ModelConfig& config, const Policy& policy, model::UnitMap map,
                     dist::Communicator& ranks, const Strategy& strategy)
    : Units(std::move(map)),
      config_(config),
      policy_(policy),
      groups_(ranks, strategy.shard_ranks, policy.gpu),
      layout_(config, Units::map(), ranks.size()),
      weights_(config, policy, layout_, groups_, strategy.keeps_gathered),
      gradients_(config, policy, layout_, groups_) {}

NamedTensors RankUnits::owned_parameters() const {
  return layout_.slice_views(weights_.masters(), groups_.slice());
}

NamedTensors RankUnits::owned_gradients() const {
  return layout_.slice_views(gradients_.sums(), groups_.slice());
}

void RankUnits::init_parameters(std::uint64_t seed) {
  const auto specs = model::parameter_specs(config_);
  const NamedTensors owned = owned_parameters();
  const auto parts = layout_.parts(groups_.slice());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const at::Tensor& tensor = owned[i].tensor;
    const at::Tensor drawn = tensor.is_cpu() ? tensor : new_tensor(tensor.sizes(), at::kFloat);
    model::init_part(policy_, config_, seed, specs[i], parts[i].begin,
                     mutable_host_span<float>(drawn));
    if (!tensor.is_cpu()) copy_to_device(policy_, drawn, tensor);
  }
  parameters_changed();
}

void RankUnits::load_parameters(const NamedTensors& whole) {
  const auto specs = model::parameter_specs(config_);
  const NamedTensors matched = model::match_tensors(specs, whole);
  const NamedTensors owned = owned_parameters();
  const auto parts = layout_.parts(groups_.slice());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const at::Tensor& tensor = owned[i].tensor;
    tensor.view({-1}).copy_(
        matched[i].tensor.reshape({-1}).narrow(0, parts[i].begin, tensor.numel()));
  }
  parameters_changed();
}

std::vector<float> RankUnits::squares_of_parameters() const {
  return squares_of(weights_.masters());
}

std::vector<float> RankUnits::squares_of_gradients() const { return squares_of(gradients_.sums()); }

std::vector<float> RankUnits::squares_of(const std::vector<at::Tensor>& slices) const {
  const auto mine = ops::sums_of_blocks(policy_, slices);
  if (groups_.ranks() == 1) return layout_.sums_of_squares(mine);
  const auto by_rank = dist::all_gather_values(groups_.world(), std::span<const float>(mine));
  std::vector<float> by_slice(by_rank.size());
  for (int rank = 0; rank < groups_.ranks(); ++rank) {
    std::copy_n(by_rank.begin() + rank * std::ssize(mine), mine.size(),
                by_slice.begin() + groups_.slice_of(rank) * std::ssize(mine));
  }
  return layout_.sums_of_squares(by_slice);
}

}  // namespace olmo::sharding
