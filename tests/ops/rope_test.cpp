#include "ops/rope.h"

#include <cstdlib>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "ops/bf16_golden.h"
#include "ops/row_reference.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::ops;
namespace ref = olmo::ops::reference;

TEST_CASE("the rope table holds the rounded cosine and sine of the fp32 angle", "[ops]") {
  const auto table = make_rope_table(10000.0, 64, 3000);
  std::int64_t different = 0;
  for (std::int64_t i = 0; i < 32; ++i) {
    const float inv_freq =
        1.0F / static_cast<float>(std::pow(10000.0, static_cast<double>(i) / 32.0));
    for (std::int64_t position = 0; position < 3000; ++position) {
      const float angle = static_cast<float>(position) * inv_freq;
      const auto at = position * 32 + i;
      different += table.cos.const_data_ptr<float>()[at] !=
                   static_cast<float>(std::cos(static_cast<double>(angle)));
      different += table.sin.const_data_ptr<float>()[at] !=
                   static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
  CHECK(different == 0);
}

TEST_CASE("a longer rope table begins with the shorter one", "[ops]") {
  const auto small = make_rope_table(500000.0, 48, 10);
  const auto large = make_rope_table(500000.0, 48, 700);
  CHECK(ref::same_bits(small.cos, large.cos.narrow(0, 0, 10)));
  CHECK(ref::same_bits(small.sin, large.sin.narrow(0, 0, 10)));
}

TEST_CASE(
    "rope rotates q and k by their definition, leaves v, whatever the instruction set and threads",
    "[ops]") {
  for (const std::int64_t head_dim : {4, 16, 40, 64}) {
    const AttentionShape shape{
        .batch = 3, .length = 50, .n_heads = 4, .n_kv_heads = 2, .head_dim = head_dim};
    const auto half = head_dim / 2, columns = 8 * head_dim;
    const auto table = make_rope_table(10000.0, head_dim, 64);
    const at::Tensor qkv = ref::values({150, columns}, 81);
    at::Tensor expected = qkv.clone();
    auto* e = expected.data_ptr<float>();
    const auto* x = qkv.const_data_ptr<float>();
    for (std::int64_t row = 0; row < 150; ++row) {
      for (std::int64_t head = 0; head < 6; ++head) {
        for (std::int64_t i = 0; i < half; ++i) {
          const auto first = row * columns + head * head_dim + i, second = first + half;
          const float c = table.cos.const_data_ptr<float>()[row % 50 * half + i];
          const float s = table.sin.const_data_ptr<float>()[row % 50 * half + i];
          e[first] = x[first] * c - x[second] * s;
          e[second] = x[second] * c + x[first] * s;
        }
      }
    }
    ref::for_each_policy([&](const Policy& policy) {
      at::Tensor got = qkv.clone();
      rope(policy, table, shape, got);
      CHECK(ref::same_bits(got, expected));
      rope_backward(policy, table, shape, got);  // the transpose of a rotation is its inverse
      CHECK(ref::distance(got, qkv.to(at::kDouble)) < 3e-7);
    });
  }
}

TEST_CASE("rows at given positions are rotated as the rows of a sequence", "[ops]") {
  const AttentionShape shape{1, 30, 4, 2, 20};
  const auto table = make_rope_table(10000.0, 20, 30);
  const at::Tensor qkv = ref::values({30, 8 * 20}, 9);
  const at::Tensor order = ref::integers(50, 30, 10);
  ref::for_each_policy([&](const Policy& policy) {
    at::Tensor sequence = qkv.clone(), rows = qkv.index_select(0, order);
    rope(policy, table, shape, sequence);
    rope(policy, table, shape, order, rows);
    CHECK(ref::same_bits(rows, sequence.index_select(0, order)));
  });
  for (const std::int64_t bad : {-1, 30}) {
    CHECK_THROWS_AS(rope(ref::plain_policy(), table, shape, at::full({30}, bad, at::kLong), qkv),
                    Error);
  }
}

TEST_CASE("rope's gradient agrees with LibTorch's autograd in double within 1e-6", "[ops]") {
  const AttentionShape shape{
      .batch = 2, .length = 9, .n_heads = 2, .n_kv_heads = 2, .head_dim = 16};
  const auto table = make_rope_table(10000.0, 16, 9);
  const at::Tensor x = ref::values({18, 96}, 82), dy = ref::values({18, 96}, 83);
  const at::Tensor leaf = x.to(at::kDouble).requires_grad_(true);
  const at::Tensor rotated = leaf.narrow(1, 0, 64).view({2, 9, 4, 2, 8});
  const at::Tensor c = table.cos.to(at::kDouble).view({1, 9, 1, 8}),
                   s = table.sin.to(at::kDouble).view({1, 9, 1, 8});
  const at::Tensor x1 = rotated.select(3, 0), x2 = rotated.select(3, 1);
  const at::Tensor y = at::cat(
      {at::stack({x1 * c - x2 * s, x2 * c + x1 * s}, 3).view({18, 64}), leaf.narrow(1, 64, 32)}, 1);
  y.backward(dy.to(at::kDouble));
  at::Tensor dx = dy.clone();
  rope_backward(ref::plain_policy(), table, shape, dx);
  CHECK(ref::distance(dx, leaf.grad()) < 1e-6);
}

TEST_CASE("rope of bf16 is that of fp32, rounded", "[ops]") {
  const AttentionShape shape{3, 29, 4, 2, 34};
  const RopeTable table = make_rope_table(1e4, shape.head_dim, 40);
  const at::Tensor x = ref::narrowed(ref::values({87, 8 * 34}, 11, 3.0F));
  const at::Tensor positions = ref::integers(87, 40, 12);
  at::Tensor forward = ref::widened(x), at_positions = forward.clone(), back = forward.clone();
  rope(ref::plain_policy(), table, shape, forward);
  rope(ref::plain_policy(), table, shape, positions, at_positions);
  rope_backward(ref::plain_policy(), table, shape, back);
  ref::for_each_policy([&](const Policy& policy) {
    at::Tensor a = x.clone(), b = x.clone(), c = x.clone();
    rope(policy, table, shape, a);
    rope(policy, table, shape, positions, b);
    rope_backward(policy, table, shape, c);
    CHECK(ref::same_bits(a, ref::narrowed(forward)));
    CHECK(ref::same_bits(b, ref::narrowed(at_positions)));
    CHECK(ref::same_bits(c, ref::narrowed(back)));
  });
}

TEST_CASE("rope of bf16 is the reference's, with no more error than LibTorch's", "[ops]") {
  const ref::Bf16Golden golden;
  const AttentionShape shape{2, 80, 2, 1, 16};
  const RopeTable table = make_rope_table(1e4, 16, 80);
  // The reference's three heads as two of queries and one of keys; values stay as they are.
  const auto packed = [&](const std::string& name) {
    return at::cat({golden.rows_of_heads(name), at::ones({160, 16}, at::kBFloat16)}, 1);
  };
  const auto rotated = [&](const at::Tensor& rows, double sign) {
    const auto x = rows.to(at::kDouble).view({2, 80, 4, 2, 8});
    const auto c = table.cos.to(at::kDouble).view({80, 1, 8});
    const auto s = table.sin.to(at::kDouble).view({80, 1, 8}) * sign;
    const auto first = x.select(3, 0), second = x.select(3, 1);
    return at::stack({first * c - second * s, second * c + first * s}, 3)
        .view({160, 64})
        .narrow(1, 0, 48);
  };
  const at::Tensor t = packed("rope.t"), dy = packed("rope.dy");
  at::Tensor y = t.clone(), dt = dy.clone();
  rope(ref::plain_policy(), table, shape, y);
  rope_backward(ref::plain_policy(), table, shape, dt);
  golden.check("rope.y", y.narrow(1, 0, 48), golden.out_rows_of_heads("rope.y"));
  golden.check_error("rope.y", y.narrow(1, 0, 48), rotated(t, 1));
  golden.check("rope.d_t", dt.narrow(1, 0, 48), golden.out_rows_of_heads("rope.d_t"));
  golden.check_error("rope.d_t", dt.narrow(1, 0, 48), rotated(dy, -1));
  CHECK(y.narrow(1, 48, 16).eq(1).all().item<bool>());
}

TEST_CASE("scaled rotations are those of transformers' YaRN", "[ops]") {
  for (const auto& golden : read_json_file(OLMO_TEST_DATA "/ops/rope_scaling.json")) {
    RopeScaling scaling{
        .factor = golden.at("factor"),
        .original_max_position_embeddings = golden.at("original_max_position_embeddings"),
        .beta_fast = golden.at("beta_fast"),
        .beta_slow = golden.at("beta_slow"),
        .attention_factor = {}};
    if (golden.contains("attention_factor"))
      scaling.attention_factor = golden.at("attention_factor").get<double>();
    const auto table =
        make_rope_table(golden.at("rope_theta"), golden.at("head_dim"), 4096, scaling);
    const auto positions = golden.at("positions").get<std::vector<std::int64_t>>();
    for (std::size_t p = 0; p < positions.size(); ++p) {
      INFO("head_dim " << golden.at("head_dim") << " position " << positions[p]);
      const auto check = [&](const at::Tensor& ours, const Json& row) {
        const auto expected = at::tensor(row.get<std::vector<double>>(), at::kDouble);
        CHECK(ref::distance(ours[positions[p]], expected) < 3e-7);
      };
      check(table.cos, golden.at("cos")[p]);
      check(table.sin, golden.at("sin")[p]);
    }
  }
}

TEST_CASE("the gradient of scaled rotations is scaled with them", "[ops]") {
  const AttentionShape shape{
      .batch = 1, .length = 9, .n_heads = 1, .n_kv_heads = 1, .head_dim = 16};
  const auto policy = ref::plain_policy();
  const RopeScaling scaling{
      .factor = 4, .original_max_position_embeddings = 8, .attention_factor = 1.5};
  const auto table = make_rope_table(10000.0, 16, 9, scaling);
  // A rotation that is followed by its transpose multiplies by the square of the factor.
  const at::Tensor x = ref::values({9, 48}, 84);
  at::Tensor y = x.clone();
  rope(policy, table, shape, y);
  rope_backward(policy, table, shape, y);
  CHECK(ref::distance(y.narrow(1, 0, 32), x.narrow(1, 0, 32) * 2.25) < 2e-6);
}

TEST_CASE("rope refuses impossible shapes", "[ops]") {
  CHECK_THROWS_AS(make_rope_table(1.0, 16, 8, RopeScaling{}), Error);
  CHECK_THROWS_AS(make_rope_table(10000.0, 15, 8), Error);
  CHECK_THROWS_AS(make_rope_table(0.0, 16, 8), Error);
  CHECK_THROWS_AS(make_rope_table(10000.0, 16, 0), Error);
  CHECK_THROWS_AS(make_rope_table(10000.0, 16, (1LL << 24) + 1), Error);
  const auto table = make_rope_table(10000.0, 16, 8);
  const AttentionShape shape{
      .batch = 1, .length = 9, .n_heads = 1, .n_kv_heads = 1, .head_dim = 16};
  CHECK_THROWS_AS(rope(ref::plain_policy(), table, shape, at::zeros({9, 48})), Error);
}

TEST_CASE("rope tables match OLMo's", "[.golden]") {
  const char* directory = std::getenv("OLMO_GOLDEN_DIR");
  if (directory == nullptr) return;
  const auto golden = read_json_file(std::filesystem::path(directory) / "model/rope_tables.json");
  for (const auto& rows : golden.at("rows")) {
    const auto head_dim = rows.at("head_dim").get<std::int64_t>();
    const auto table = make_rope_table(rows.at("theta").get<double>(), head_dim,
                                       rows.at("max_len").get<std::int64_t>());
    const auto positions = rows.at("positions").get<std::vector<std::int64_t>>();
    for (std::size_t p = 0; p < positions.size(); ++p) {
      double worst = 0;
      for (std::int64_t i = 0; i < head_dim; ++i) {
        const auto column = static_cast<std::size_t>(i);
        const auto at = positions[p] * (head_dim / 2) + i % (head_dim / 2);
        worst = std::max(worst, std::abs(rows.at("cos")[p][column].get<double>() -
                                         table.cos.const_data_ptr<float>()[at]));
        worst = std::max(worst, std::abs(rows.at("sin")[p][column].get<double>() -
                                         table.sin.const_data_ptr<float>()[at]));
      }
      INFO("head_dim " << head_dim << " position " << positions[p] << " worst " << worst);
      CHECK(worst < 2e-7);
    }
  }
}
