#include "sharding/layout.h"

#include <ATen/ATen.h>

#include "support/catch.h"

namespace olmo::sharding {
namespace {

model::ParameterSpec spec(std::string name, std::vector<std::int64_t> shape) {
  return {std::move(name), std::move(shape), model::ParameterRole::kNormWeight, 0};
}

const std::vector<model::ParameterSpec> kSpecs = {spec("a", {3, 5000}), spec("b", {7}),
                                                  spec("c", {2, kChunk})};

TEST_CASE("slices are of whole chunks and of one size", "[sharding]") {
  for (const int ranks : {1, 2, 3, 7, 216}) {
    const UnitLayout layout(kSpecs, ranks);
    CHECK(layout.slice() % kChunk == 0);
    CHECK(layout.buffer() == layout.slice() * ranks);
    CHECK(layout.buffer() >= 7 * kChunk);  // 4 + 1 + 2
    CHECK(layout.buffer() < (7 + ranks) * kChunk);
    for (const auto& place : layout.places()) CHECK(place.begin % kChunk == 0);
  }
}

TEST_CASE("the slices of all ranks hold each element of each tensor once", "[sharding]") {
  for (const int ranks : {1, 2, 3, 7, 216}) {
    INFO(ranks << " ranks");
    const UnitLayout layout(kSpecs, ranks);
    const at::Tensor buffer = at::zeros({layout.buffer()});
    for (int rank = 0; rank < ranks; ++rank) {
      const at::Tensor slice = buffer.narrow(0, rank * layout.slice(), layout.slice());
      for (const Part& part : layout.parts(rank))
        slice.narrow(0, part.slice_begin, part.size).add_(1);
    }
    std::int64_t elements = 0;
    for (const auto& [name, tensor] : layout.views(buffer)) {
      CHECK(at::equal(tensor, at::ones_like(tensor)));
      elements += tensor.numel();
    }
    CHECK(buffer.sum().item<double>() == static_cast<double>(elements));
  }
}

TEST_CASE("parts begin at a chunk of their tensor", "[sharding]") {
  const UnitLayout layout(kSpecs, 3);
  for (int rank = 0; rank < 3; ++rank) {
    for (const auto& part : layout.parts(rank)) {
      CHECK(part.begin % kChunk == 0);
      CHECK(part.slice_begin % kChunk == 0);
    }
  }
}

}  // namespace
}  // namespace olmo::sharding
