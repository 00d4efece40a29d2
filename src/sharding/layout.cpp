#include "sharding/layout.h"

#include <algorithm>

#include "core/error.h"
#include "ops/kernels/row_ops.h"

namespace olmo::sharding {

static_assert(kChunk == ops::kSumBlock);

namespace {

std::int64_t rounded_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

}  // namespace

UnitLayout::UnitLayout(const std::vector<model::ParameterSpec>& specs, int ranks) : ranks_(ranks) {
  OLMO_CHECK(ranks >= 1);
  std::int64_t end = 0;
  for (const auto& spec : specs) {
    const std::int64_t size = model::elements(spec);
    places_.push_back({spec.name, spec.shape, spec.role, end, size});
    end = rounded_up(end + size, kChunk);
  }
  slice_ = rounded_up(end, kChunk * ranks) / ranks;
}

std::vector<Part> UnitLayout::parts(int rank) const {
  OLMO_CHECK(rank >= 0 && rank < ranks_);
  const std::int64_t from = rank * slice_, to = from + slice_;
  std::vector<Part> parts;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::int64_t begin = std::max(from, places_[i].begin);
    const std::int64_t end = std::min(to, places_[i].end());
    if (begin < end) parts.push_back({i, begin - places_[i].begin, begin - from, end - begin});
  }
  return parts;
}

NamedTensors UnitLayout::views(const at::Tensor& buffer) const {
  OLMO_CHECK(buffer.dim() == 1 && buffer.numel() == this->buffer());
  NamedTensors views;
  for (const auto& place : places_)
    views.push_back({place.name, buffer.narrow(0, place.begin, place.size).view(place.shape)});
  return views;
}

}  // namespace olmo::sharding
