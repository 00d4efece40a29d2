#include "ops/embedding.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "ops/bf16_golden.h"
#include "ops/row_reference.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::ops;
namespace ref = olmo::ops::reference;

TEST_CASE("embedding copies rows, whatever the threads", "[ops]") {
  const at::Tensor table = ref::values({23, 150}, 1), ids = ref::integers(400, 23, 2);
  ref::for_each_policy([&](const Policy& policy) {
    at::Tensor x = at::empty({400, 150});
    embedding(policy, ids, table, x);
    CHECK(ref::same_bits(x, table.index_select(0, ids)));
  });
}

TEST_CASE("embedding copies rows of bf16, and widens them exactly into fp32", "[ops]") {
  const at::Tensor table = ref::narrowed(ref::values({23, 150}, 1));
  const at::Tensor ids = ref::integers(400, 23, 2);
  const at::Tensor x = at::empty({400, 150}), narrow = at::empty({400, 150}, at::kBFloat16);
  embedding(ref::plain_policy(), ids, table, x);
  embedding(ref::plain_policy(), ids, table, narrow);
  CHECK(ref::same_bits(x, ref::widened(table).index_select(0, ids)));
  CHECK(ref::same_bits(narrow, table.index_select(0, ids)));
  CHECK_THROWS_AS(embedding(ref::plain_policy(), ids, ref::widened(table), narrow), Error);
}

TEST_CASE(
    "embedding gradients fold the tokens of one id in ascending position and leave other rows",
    "[ops]") {
  const at::Tensor ids = ref::integers(400, 23, 3), dx = ref::values({400, 150}, 4),
                   start = ref::values({40, 150}, 5);
  at::Tensor expected = start.clone();
  for (std::int64_t m = 0; m < 400; ++m) {
    const auto id = ids.const_data_ptr<std::int64_t>()[m];
    for (std::int64_t i = 0; i < 150; ++i)
      expected.data_ptr<float>()[id * 150 + i] += dx.const_data_ptr<float>()[m * 150 + i];
  }
  ref::for_each_policy([&](const Policy& policy) {
    at::Tensor dwte = start.clone();
    embedding_backward(policy, ids, dx, dwte);
    CHECK(ref::same_bits(dwte, expected));
  });
}

TEST_CASE("embedding gradients of bf16 rows are those of the same numbers in fp32", "[ops]") {
  const at::Tensor ids = ref::integers(400, 23, 3);
  const at::Tensor dx = ref::narrowed(ref::values({400, 150}, 4)),
                   start = ref::values({40, 150}, 5);
  ref::for_each_policy([&](const Policy& policy) {
    for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
      const at::Tensor expected = start.clone(), found = start.clone();
      embedding_backward(policy, ids, ref::widened(dx), expected, rounding);
      embedding_backward(policy, ids, dx, found, rounding);
      CHECK(ref::same_bits(found, expected));
    }
  });
}

TEST_CASE(
    "rounded embedding gradients fold from zero, round, join the stored value and round again",
    "[ops]") {
  const at::Tensor ids = ref::integers(400, 23, 3), dx = ref::values({400, 150}, 4),
                   start = ref::values({40, 150}, 5);
  at::Tensor sums = at::zeros({40, 150});
  for (std::int64_t m = 0; m < 400; ++m) sums[ids[m].item<std::int64_t>()].add_(dx[m]);
  const at::Tensor present = at::zeros({40, 1}, at::kBool);
  for (std::int64_t m = 0; m < 400; ++m) present[ids[m].item<std::int64_t>()][0] = true;
  const at::Tensor expected = at::where(present, ref::rounded(start + ref::rounded(sums)), start);
  ref::for_each_policy([&](const Policy& policy) {
    const at::Tensor dwte = start.clone();
    embedding_backward(policy, ids, dx, dwte, Rounding::kBf16);
    CHECK(ref::same_bits(dwte, expected));
  });
}

TEST_CASE("embedding gradients in bf16 are the reference's, with no more error than LibTorch's",
          "[ops]") {
  const ref::Bf16Golden golden;
  const at::Tensor ids = golden.in("embedding.ids").view({160});
  const at::Tensor dy = golden.in("embedding.dy").view({160, 24});
  const at::Tensor exact = at::zeros({40, 24}, at::kDouble).index_add_(0, ids, dy.to(at::kDouble));
  const at::Tensor rounded = at::zeros({40, 24}), fp32 = at::zeros({40, 24});
  embedding_backward(ref::plain_policy(), ids, dy, rounded, Rounding::kBf16);
  embedding_backward(ref::plain_policy(), ids, dy, fp32);
  golden.check("embedding_bf16.d_w", rounded);
  golden.check_error("embedding_bf16.d_w", rounded, exact);
  golden.check("embedding_fp32.d_w", fp32);
}

TEST_CASE("an empty batch leaves the embedding gradient alone", "[ops]") {
  const at::Tensor dwte = ref::values({5, 7}, 6), before = dwte.clone();
  embedding_backward(ref::plain_policy(), at::empty({0}, at::kLong), at::empty({0, 7}), dwte);
  CHECK(ref::same_bits(dwte, before));
}

TEST_CASE("a token id beyond the vocabulary is an input error that names its position", "[ops]") {
  at::Tensor ids = at::zeros({4}, at::kLong);
  for (const std::int64_t bad : {-1, 9, 1000000}) {
    ids[2] = bad;
    try {
      embedding(ref::plain_policy(), ids, at::zeros({9, 3}), at::empty({4, 3}));
      FAIL("accepted " << bad);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kInput);
      CHECK(std::string(error.what()).find("position 2") != std::string::npos);
      CHECK(std::string(error.what()).find("got " + std::to_string(bad)) != std::string::npos);
    }
    CHECK_THROWS_AS(
        embedding_backward(ref::plain_policy(), ids, at::zeros({4, 3}), at::zeros({9, 3})), Error);
  }
}
