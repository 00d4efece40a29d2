// The network's parameters unit by unit: a pass asks for a unit's weights just before it uses them,
// and hands back the unit's gradients just after they are whole. One process answers from memory
// (model/held_units.h); ranks gather the weights and exchange the gradients (sharding).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_config.h"
#include "model/parameters.h"

namespace olmo::model {

/// OLMo's names of what FSDP wraps (olmo/config.py, FSDPWrapStrategy). No bit depends on it.
inline constexpr std::array<std::string_view, 9> kWrappingStrategies = {
    "by_block",   "by_block_and_size", "by_block_group", "by_block_group_and_size",
    "size_based", "one_in_two",        "one_in_three",   "one_in_four",
    "one_in_five"};

/// What is wrong with a wrapping strategy for this model; `key` is its place in a config.
std::vector<ConfigProblem> problems_of_wrapping(const ModelConfig& config,
                                                const std::optional<std::string>& wrapping,
                                                std::string_view key);

/// Which parameters form a unit: they are gathered, freed and exchanged together. Unit 0 is the
/// *root*: embedding, head, last norm, and the blocks that belong to no other unit. Each other unit
/// is a run of consecutive blocks; units are numbered in the order of their blocks.
class UnitMap {
 public:
  static constexpr std::size_t kRoot = 0;

  /// `wrapping`: one of kWrappingStrategies, as OLMo understands them (olmo/model.py,
  /// get_fsdp_wrap_policy), but that the `_and_size` variants leave embedding and head in the root.
  /// Null: the whole model is the root. Throws Error(kUsage) for anything else.
  explicit UnitMap(const ModelConfig& config,
                   const std::optional<std::string>& wrapping = "by_block");

  [[nodiscard]] std::size_t size() const { return specs_.size(); }
  /// Blocks of the model.
  [[nodiscard]] std::size_t blocks() const { return unit_of_.size(); }
  [[nodiscard]] std::size_t unit_of(std::size_t layer) const { return unit_of_[layer]; }
  /// Whether the block is the first of a unit other than the root; likewise the last.
  [[nodiscard]] bool begins_unit(std::size_t layer) const;
  [[nodiscard]] bool ends_unit(std::size_t layer) const;
  /// Of a unit, in the order of parameter_specs.
  [[nodiscard]] const std::vector<ParameterSpec>& specs(std::size_t unit) const {
    return specs_[unit];
  }

 private:
  std::vector<std::size_t> unit_of_;
  std::vector<std::vector<ParameterSpec>> specs_;
};

/// What a unit's weights are wanted for.
enum class Pass {
  kForward,     ///< a backward pass follows
  kBackward,    ///< what activation checkpointing computes again included
  kEvaluation,  ///< a forward pass that no backward pass follows
};

/// Those who hold weights and gradients. The order of the calls of a pass is that of training_pass
/// and evaluation_pass, whatever the batch: an implementation knows which unit comes next. A pass
/// that throws leaves its units as they are; nothing but the end of the training can follow.
class Units {
 public:
  explicit Units(UnitMap map) : map_(std::move(map)) {}
  virtual ~Units() = default;
  Units(const Units&) = delete;
  Units& operator=(const Units&) = delete;

  [[nodiscard]] const UnitMap& map() const { return map_; }

  /// The weights to compute with, in the dtypes of precision.h; only the tensors of this unit are
  /// read, up to release() of it. The root of a training pass is acquired with kForward and
  /// released with kBackward; everything else is released with what it was acquired with.
  virtual const ModelTensors& acquire(std::size_t unit, Pass pass) = 0;
  virtual void release(std::size_t unit, Pass pass) = 0;

  /// Where a micro-batch's gradients of the unit are written, fp32. The network sets every element,
  /// so that the memory needs no zeros before. Asked for after acquire() for kBackward; of the
  /// root, at the end of the forward pass.
  virtual const ModelTensors& gradients(std::size_t unit) = 0;
  /// The unit's gradients of this micro-batch are whole; the unit has been released. The root's
  /// come last: a table that is both embedding and head has its whole gradient only then.
  virtual void gradients_done(std::size_t unit) = 0;

 private:
  UnitMap map_;
};

/// What a pass computes while it holds the weights. As it stands it computes nothing: the pass of a
/// rank that has no micro-batch in a round.
class PassWork {
 public:
  virtual ~PassWork() = default;

  virtual void embedding(const ModelTensors& root);
  virtual void block(std::size_t layer, const BlockTensors& weights);
  /// What follows the last block of an evaluation pass.
  virtual void head(const ModelTensors& root);
  /// What follows the last block of a training pass: head and last norm, forward and backward.
  virtual void head_and_backward(const ModelTensors& root, const ModelTensors& gradients);
  virtual void block_backward(std::size_t layer, const BlockTensors& weights,
                              const BlockTensors& gradients);
  virtual void embedding_backward(const ModelTensors& root, const ModelTensors& gradients);
};

/// A micro-batch's forward and backward pass: root, blocks in ascending order, head, blocks in
/// descending order, root.
void training_pass(Units& units, PassWork& work);
/// A forward pass alone.
void evaluation_pass(Units& units, PassWork& work);

}  // namespace olmo::model
