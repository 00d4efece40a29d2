#include "model/units.h"

#include "core/config_checks.h"

namespace olmo::model {
namespace {

/// What a block is to the units.
enum class Wrapped {
  kAlone,     ///< begins a unit
  kWithLast,  ///< belongs to the unit of the block before it
  kWithRoot,
};

/// Every n-th block is a unit; those between them stay with the root.
struct OneIn {
  std::string_view wrapping;
  std::int64_t period;
};
constexpr std::array<OneIn, 4> kOneIn = {
    {{"one_in_two", 2}, {"one_in_three", 3}, {"one_in_four", 4}, {"one_in_five", 5}}};

/// From so many parameters on, `size_based` makes a module a unit (torch's
/// size_based_auto_wrap_policy).
constexpr std::int64_t kLargeModule = 100'000'000;

bool is_by_group(std::string_view wrapping) {
  return wrapping == "by_block_group" || wrapping == "by_block_group_and_size";
}

std::int64_t block_parameters(const std::vector<ParameterSpec>& specs) {
  std::int64_t count = 0;
  for (const auto& spec : specs) {
    if (spec.layer == 0) count += elements(spec);
  }
  return count;
}

/// `block_size`: parameters of a block.
Wrapped wrapped(std::string_view wrapping, const ModelConfig& config, std::int64_t block_size,
                std::int64_t layer) {
  const auto alone_if = [](bool alone) { return alone ? Wrapped::kAlone : Wrapped::kWithRoot; };
  if (is_by_group(wrapping))
    return layer % config.block_group_size == 0 ? Wrapped::kAlone : Wrapped::kWithLast;
  if (wrapping == "size_based") return alone_if(block_size >= kLargeModule);
  for (const auto& [word, period] : kOneIn) {
    if (wrapping == word) return alone_if(layer % period == 0);
  }
  return Wrapped::kAlone;
}

}  // namespace

std::vector<ConfigProblem> problems_of_wrapping(const ModelConfig& config,
                                                const std::optional<std::string>& wrapping,
                                                std::string_view key) {
  ConfigChecks checks;
  if (!wrapping || !checks.one_of(key, *wrapping, kWrappingStrategies)) return checks.take();
  if (is_by_group(*wrapping) && config.block_group_size < 2) {
    checks.add(key, "is `" + *wrapping +
                        "`, which needs `model.block_group_size` to be 2 or more, got " +
                        std::to_string(config.block_group_size));
  }
  return checks.take();
}

UnitMap::UnitMap(const ModelConfig& config, const std::optional<std::string>& wrapping) {
  require_none(problems_of_wrapping(config, wrapping, "fsdp.wrapping_strategy"));
  auto specs = parameter_specs(config);
  const std::int64_t block_size = block_parameters(specs);
  std::size_t last = kRoot;
  for (std::int64_t layer = 0; layer < config.n_layers; ++layer) {
    const Wrapped kind =
        wrapping ? wrapped(*wrapping, config, block_size, layer) : Wrapped::kWithRoot;
    if (kind == Wrapped::kAlone) ++last;
    unit_of_.push_back(kind == Wrapped::kWithRoot ? kRoot : last);
  }
  specs_.resize(last + 1);
  for (auto& spec : specs) {
    const std::size_t unit =
        spec.layer < 0 ? kRoot : unit_of_[static_cast<std::size_t>(spec.layer)];
    specs_[unit].push_back(std::move(spec));
  }
}

bool UnitMap::begins_unit(std::size_t layer) const {
  const std::size_t unit = unit_of_[layer];
  return unit != kRoot && (layer == 0 || unit_of_[layer - 1] != unit);
}

bool UnitMap::ends_unit(std::size_t layer) const {
  const std::size_t unit = unit_of_[layer];
  return unit != kRoot && (layer + 1 == unit_of_.size() || unit_of_[layer + 1] != unit);
}

void PassWork::embedding(const ModelTensors&) {}
void PassWork::block(std::size_t, const BlockTensors&) {}
void PassWork::head(const ModelTensors&) {}
void PassWork::head_and_backward(const ModelTensors&, const ModelTensors&) {}
void PassWork::block_backward(std::size_t, const BlockTensors&, const BlockTensors&) {}
void PassWork::embedding_backward(const ModelTensors&, const ModelTensors&) {}

namespace {

void forward_blocks(Units& units, PassWork& work, const ModelTensors& root, Pass pass) {
  const UnitMap& map = units.map();
  const ModelTensors* held = nullptr;
  for (std::size_t layer = 0; layer < map.blocks(); ++layer) {
    const std::size_t unit = map.unit_of(layer);
    if (map.begins_unit(layer)) held = &units.acquire(unit, pass);
    work.block(layer, (unit == UnitMap::kRoot ? root : *held).blocks[layer]);
    if (map.ends_unit(layer)) units.release(unit, pass);
  }
}

void backward_blocks(Units& units, PassWork& work, const ModelTensors& root,
                     const ModelTensors& root_gradients) {
  const UnitMap& map = units.map();
  const ModelTensors* held = nullptr;
  const ModelTensors* gradients = nullptr;
  for (std::size_t layer = map.blocks(); layer-- > 0;) {
    const std::size_t unit = map.unit_of(layer);
    if (map.ends_unit(layer)) {
      held = &units.acquire(unit, Pass::kBackward);
      gradients = &units.gradients(unit);
    }
    const bool in_root = unit == UnitMap::kRoot;
    work.block_backward(layer, (in_root ? root : *held).blocks[layer],
                        (in_root ? root_gradients : *gradients).blocks[layer]);
    if (map.begins_unit(layer)) {
      units.release(unit, Pass::kBackward);
      units.gradients_done(unit);
    }
  }
}

}  // namespace

void training_pass(Units& units, PassWork& work) {
  const ModelTensors& root = units.acquire(UnitMap::kRoot, Pass::kForward);
  work.embedding(root);
  forward_blocks(units, work, root, Pass::kForward);
  const ModelTensors& gradients = units.gradients(UnitMap::kRoot);
  work.head_and_backward(root, gradients);
  backward_blocks(units, work, root, gradients);
  work.embedding_backward(root, gradients);
  units.release(UnitMap::kRoot, Pass::kBackward);
  units.gradients_done(UnitMap::kRoot);
}

void evaluation_pass(Units& units, PassWork& work) {
  const ModelTensors& root = units.acquire(UnitMap::kRoot, Pass::kEvaluation);
  work.embedding(root);
  forward_blocks(units, work, root, Pass::kEvaluation);
  work.head(root);
  units.release(UnitMap::kRoot, Pass::kEvaluation);
}

}  // namespace olmo::model
