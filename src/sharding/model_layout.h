// The layouts of all units of a model.
#pragma once

#include <cstdint>
#include <vector>

#include "model/units.h"
#include "sharding/layout.h"

namespace olmo::sharding {

class ModelLayout {
 public:
  /// Each unit's buffer is cut into `slices`.
  ModelLayout(const model::ModelConfig& config, const model::UnitMap& map, int slices);

  [[nodiscard]] const std::vector<UnitLayout>& units() const { return units_; }
  [[nodiscard]] int slices() const { return units_.front().ranks(); }
  /// Elements of a slice of every unit together; chunks likewise.
  [[nodiscard]] std::int64_t slice() const { return slice_; }
  [[nodiscard]] std::int64_t chunks_of_slice() const { return slice_ / kChunk; }
  /// Elements of the largest buffer of all units but the root.
  [[nodiscard]] std::int64_t largest_block_buffer() const;

  /// Where a parameter lies.
  struct Where {
    std::size_t unit = 0;
    std::size_t place = 0;  ///< index into UnitLayout::places
  };
  /// Of each parameter, in the order of model::parameter_specs: the model's order.
  [[nodiscard]] const std::vector<Where>& parameters() const { return parameters_; }
  [[nodiscard]] const Place& place(const Where& where) const {
    return units_[where.unit].places()[where.place];
  }
  [[nodiscard]] std::vector<std::string> names() const;

  /// The whole tensors of every parameter, in the model's order, as views of the units' buffers.
  [[nodiscard]] NamedTensors views(const std::vector<at::Tensor>& buffers) const;
  /// What of every parameter lies in slice `slice`, in the model's order, as flat views of the
  /// units' slices; without elements where nothing does. Of the only slice: as views().
  [[nodiscard]] NamedTensors slice_views(const std::vector<at::Tensor>& slices, int slice) const;

  /// Which elements of every parameter lie in slice `slice`, in the model's order; `size` is 0
  /// where none does.
  [[nodiscard]] std::vector<Part> parts(int slice) const;

  /// The sums of squares of every parameter, in the model's order. `chunks`: of slice 0, 1, …: of
  /// its part of unit 0, 1, …: the sum of each chunk (ops::sums_of_blocks).
  [[nodiscard]] std::vector<float> sums_of_squares(std::span<const float> chunks) const;

 private:
  std::vector<UnitLayout> units_;
  std::vector<Where> parameters_;
  std::int64_t slice_ = 0;
};

}  // namespace olmo::sharding
