#include "model/buffer.h"

#include "support/catch.h"

using olmo::model::Buffer;

TEST_CASE("a buffer gives every shape that fits out of the same memory", "[model]") {
  Buffer buffer;
  const at::Tensor large = buffer.shaped({4, 6});
  const at::Tensor small = buffer.shaped({3, 2, 2});
  CHECK(small.data_ptr() == large.data_ptr());
  CHECK(small.sizes() == at::IntArrayRef({3, 2, 2}));
  CHECK(buffer.get().is_same(small));
  CHECK(buffer.shaped({4, 6}).data_ptr() == large.data_ptr());
}

TEST_CASE("a buffer grows for a larger shape and keeps its type", "[model]") {
  Buffer buffer(at::kByte);
  (void)buffer.shaped({2});
  const at::Tensor grown = buffer.shaped({3 << 20, 2});
  CHECK(grown.scalar_type() == at::kByte);
  CHECK(grown.numel() == 6 << 20);
  grown.fill_(7);
  CHECK(grown.eq(7).all().item<bool>());
}
