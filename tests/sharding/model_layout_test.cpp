#include "sharding/model_layout.h"

#include <ATen/ATen.h>

#include "ops/optimizer_update.h"
#include "sharding/small_model.h"
#include "support/catch.h"

namespace olmo::sharding {
namespace {

std::vector<at::Tensor> random_buffers(const ModelLayout& layout) {
  std::vector<at::Tensor> buffers;
  for (const UnitLayout& unit : layout.units()) {
    buffers.push_back(at::zeros({unit.buffer()}));
    for (const auto& view : unit.views(buffers.back())) view.tensor.normal_();
  }
  return buffers;
}

}  // namespace

TEST_CASE("views of the units' buffers are the parameters in the model's order", "[sharding]") {
  const auto config = small_model();
  const ModelLayout layout(config, model::UnitMap(config), 5);
  const auto views = layout.views(random_buffers(layout));
  const auto specs = model::parameter_specs(config);
  REQUIRE(views.size() == specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    CHECK(views[i].name == specs[i].name);
    CHECK(views[i].tensor.sizes() == at::IntArrayRef(specs[i].shape));
  }
  CHECK(layout.names() == names_of(views));
}

TEST_CASE("the slices of all ranks hold every element once, and give the sums of squares",
          "[sharding]") {
  const auto config = small_model();
  for (const int slices : {1, 2, 3, 7, 40}) {
    const ModelLayout layout(config, model::UnitMap(config), slices);
    const auto buffers = random_buffers(layout);
    const auto whole = layout.views(buffers);
    std::vector<std::vector<at::Tensor>> found(whole.size());
    std::vector<float> chunks;
    for (int slice = 0; slice < slices; ++slice) {
      std::vector<at::Tensor> mine;
      for (std::size_t unit = 0; unit < buffers.size(); ++unit) {
        const auto size = layout.units()[unit].slice();
        mine.push_back(buffers[unit].narrow(0, slice * size, size));
      }
      const auto views = layout.slice_views(mine, slice);
      for (std::size_t i = 0; i < whole.size(); ++i) found[i].push_back(views[i].tensor.view({-1}));
      const auto sums = ops::sums_of_blocks(Policy(), mine);
      chunks.insert(chunks.end(), sums.begin(), sums.end());
    }
    INFO("slices: " << slices);
    for (std::size_t i = 0; i < whole.size(); ++i)
      CHECK(at::cat(found[i]).equal(whole[i].tensor.view({-1})));
    CHECK(layout.sums_of_squares(chunks) == ops::sums_of_squares(Policy(), whole));
  }
}

}  // namespace olmo::sharding
