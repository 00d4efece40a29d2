#include "ops/embedding.h"

#include <ATen/ATen.h>

#include "core/error.h"
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

TEST_CASE("embedding widens rows of bf16 exactly", "[ops]") {
  const at::Tensor table = ref::values({23, 150}, 1).to(at::kBFloat16);
  const at::Tensor ids = ref::integers(400, 23, 2), x = at::empty({400, 150});
  embedding(ref::plain_policy(), ids, table, x);
  CHECK(ref::same_bits(x, table.to(at::kFloat).index_select(0, ids)));
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
