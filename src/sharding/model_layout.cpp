#include "sharding/model_layout.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "ops/optimizer_update.h"

namespace olmo::sharding {

ModelLayout::ModelLayout(const model::ModelConfig& config, const model::UnitMap& map, int slices) {
  std::map<std::string, Where> found;
  for (std::size_t unit = 0; unit < map.size(); ++unit) {
    units_.emplace_back(map.specs(unit), slices);
    slice_ += units_.back().slice();
    const auto& places = units_.back().places();
    for (std::size_t i = 0; i < places.size(); ++i) found[places[i].name] = {unit, i};
  }
  for (const auto& spec : model::parameter_specs(config))
    parameters_.push_back(found.at(spec.name));
}

std::int64_t ModelLayout::largest_block_buffer() const {
  std::int64_t largest = 0;
  for (std::size_t unit = 1; unit < units_.size(); ++unit)
    largest = std::max(largest, units_[unit].buffer());
  return largest;
}

std::vector<std::string> ModelLayout::names() const {
  std::vector<std::string> names;
  for (const Where& where : parameters_) names.push_back(place(where).name);
  return names;
}

NamedTensors ModelLayout::views(const std::vector<at::Tensor>& buffers) const {
  OLMO_CHECK(buffers.size() == units_.size());
  std::vector<NamedTensors> of_units;
  for (std::size_t unit = 0; unit < units_.size(); ++unit)
    of_units.push_back(units_[unit].views(buffers[unit]));
  NamedTensors views;
  for (const Where& where : parameters_) views.push_back(of_units[where.unit][where.place]);
  return views;
}

std::vector<Part> ModelLayout::parts(int slice) const {
  std::vector<std::vector<Part>> of_units;
  for (const UnitLayout& unit : units_) {
    of_units.emplace_back(unit.places().size());
    for (const Part& part : unit.parts(slice)) of_units.back()[part.tensor] = part;
  }
  std::vector<Part> parts;
  for (const Where& where : parameters_) parts.push_back(of_units[where.unit][where.place]);
  return parts;
}

NamedTensors ModelLayout::slice_views(const std::vector<at::Tensor>& slices, int slice) const {
  if (this->slices() == 1) return views(slices);
  OLMO_CHECK(slices.size() == units_.size());
  const auto parts = this->parts(slice);
  NamedTensors views;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor& of_unit = slices[parameters_[i].unit];
    views.push_back(
        {place(parameters_[i]).name, of_unit.narrow(0, parts[i].slice_begin, parts[i].size)});
  }
  return views;
}

std::vector<float> ModelLayout::sums_of_squares(std::span<const float> chunks) const {
  OLMO_CHECK(std::ssize(chunks) == slices() * chunks_of_slice());
  std::vector<std::int64_t> before{0};  // chunks of a slice that lie in earlier units
  for (const UnitLayout& unit : units_) before.push_back(before.back() + unit.slice() / kChunk);
  std::vector<float> sums;
  for (const Where& where : parameters_) {
    const Place& place = this->place(where);
    const std::int64_t in_slice = units_[where.unit].slice() / kChunk;
    std::vector<float> values;
    for (std::int64_t i = 0; i < place.chunks(); ++i) {
      const std::int64_t chunk = place.begin / kChunk + i;
      const std::int64_t slice = chunk / in_slice;
      values.push_back(chunks[static_cast<std::size_t>(slice * chunks_of_slice() +
                                                       before[where.unit] + chunk % in_slice)]);
    }
    sums.push_back(ops::tree_sum(std::move(values)));
  }
  return sums;
}

}  // namespace olmo::sharding
