#include <cmath>
#include <optional>
#include <random>

#include <ATen/ATen.h>

#include "core/compute/libtorch.h"
#include "core/error.h"
#include "ops/attention.h"
#include "ops/row_reference.h"
#include "support/catch.h"
#include "support/random_forest.h"

using namespace olmo;
namespace ref = olmo::ops::reference;
using ops::AttentionShape;

namespace {

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kBFloat16};

using Segments = std::vector<TokenSegment>;

struct Heads {
  std::int64_t n_heads, n_kv_heads, head_dim;
};

AttentionShape shape_of(const Heads& heads, std::int64_t rows) {
  return {1, rows, heads.n_heads, heads.n_kv_heads, heads.head_dim};
}

double scale(const Heads& h) { return 1.0 / std::sqrt(static_cast<double>(h.head_dim)); }

at::Tensor random_rows(const Heads& h, std::int64_t rows) {
  return ref::values({rows, (h.n_heads + 2 * h.n_kv_heads) * h.head_dim}, 1, 3.0F);
}

at::Tensor run(const Policy& policy, const Heads& heads, const Segments& segments,
               const at::Tensor& qkv, std::int64_t window = 0) {
  auto plan = ops::plan_forest(policy, shape_of(heads, qkv.size(0)), segments);
  auto out = at::full({qkv.size(0), heads.n_heads * heads.head_dim}, NAN, qkv.options());
  ops::attention_forest(policy, plan, qkv, out, window);
  return out;
}

// Of each segment's path alone, in double, with a mask: row i sees the rows above i - window.
at::Tensor masked(const Heads& h, const Segments& segments, const at::Tensor& qkv,
                  std::int64_t window) {
  auto out = at::empty({qkv.size(0), h.n_heads * h.head_dim}, at::kDouble);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto rows =
        at::tensor(test::path_rows(segments, static_cast<std::int64_t>(i)), at::kLong);
    const auto length = rows.numel();
    const auto heads = qkv.index_select(0, rows)
                           .to(at::kDouble)
                           .view({length, h.n_heads + 2 * h.n_kv_heads, h.head_dim})
                           .transpose(0, 1);
    const auto repeats = h.n_heads / h.n_kv_heads;
    const auto k = heads.narrow(0, h.n_heads, h.n_kv_heads).repeat_interleave(repeats, 0);
    const auto v =
        heads.narrow(0, h.n_heads + h.n_kv_heads, h.n_kv_heads).repeat_interleave(repeats, 0);
    const auto scores = at::matmul(heads.narrow(0, 0, h.n_heads), k.transpose(1, 2)) * scale(h);
    const auto ones = at::ones({length, length}, at::kBool);
    const auto seen = ones.tril() & ones.triu(1 - window);
    const auto weights = scores.masked_fill(~seen, -INFINITY).softmax(-1);
    const auto path = at::matmul(weights, v).transpose(0, 1).reshape({length, -1});
    out.narrow(0, segments[i].begin, segments[i].length)
        .copy_(path.narrow(0, length - segments[i].length, segments[i].length));
  }
  return out;
}

// attention() of each segment's path alone.
at::Tensor path_by_path(const Heads& heads, const Segments& segments, const at::Tensor& qkv) {
  const auto policy = resolve_policy("portable", "auto", 1);
  auto out = at::full({qkv.size(0), heads.n_heads * heads.head_dim}, NAN, qkv.options());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto rows =
        at::tensor(test::path_rows(segments, static_cast<std::int64_t>(i)), at::kLong);
    const auto length = rows.numel();
    auto path_out = at::empty({length, out.size(1)}, qkv.options());
    auto lse = at::empty({1, heads.n_heads, length});
    ops::attention(policy, shape_of(heads, length), qkv.index_select(0, rows), path_out, lse);
    out.narrow(0, segments[i].begin, segments[i].length)
        .copy_(path_out.narrow(0, length - segments[i].length, segments[i].length));
  }
  return out;
}

void check_forest(const Heads& heads, const Segments& segments, const at::Tensor& qkv) {
  const auto expected = path_by_path(heads, segments, qkv);
  ref::for_each_policy([&](const Policy& policy) {
    INFO(to_string(policy.isa) << ", " << policy.threads << " threads, " << heads.n_heads << "/"
                               << heads.n_kv_heads << " heads of " << heads.head_dim << ", "
                               << segments.size() << " segments");
    CHECK(ref::same_bits(run(policy, heads, segments, qkv), expected));
  });
}

}  // namespace

TEST_CASE("attention over a forest has the bits of attention over each path alone", "[ops]") {
  std::mt19937 random(7);
  for (const Heads& heads : {Heads{1, 1, 1}, Heads{2, 1, 16}, Heads{3, 3, 33}, Heads{4, 2, 64}}) {
    for (const std::size_t count : {1U, 2U, 9U, 25U}) {
      const auto segments = test::random_segments(count, random);
      const auto qkv = random_rows(heads, test::rows_of(segments));
      for (const auto type : kTypes) check_forest(heads, segments, qkv.to(type));
    }
  }
}

TEST_CASE("a long prefix with many short children keeps the bits", "[ops]") {
  const Heads heads{2, 2, 32};
  Segments segments{{-1, 0, 301, 0}};
  for (std::int64_t i = 0; i < 60; ++i)
    segments.push_back({0, test::rows_of(segments), 1 + i % 21, 301});
  const auto qkv = random_rows(heads, test::rows_of(segments));
  for (const auto type : kTypes) check_forest(heads, segments, qkv.to(type));
}

TEST_CASE("a value that is not a number reaches only the rows of the paths through it", "[ops]") {
  const Heads heads{2, 1, 16};
  const Segments segments{{-1, 0, 70, 0}, {0, 70, 9, 70}, {0, 79, 5, 70}, {-1, 84, 20, 0}};
  auto qkv = random_rows(heads, 104);
  qkv.select(0, 72).narrow(0, 3 * 16, 16).fill_(NAN);  // the value of the first child's third row
  ref::for_each_policy([&](const Policy& policy) {
    const auto nan = run(policy, heads, segments, qkv).isnan();
    CHECK(nan.narrow(0, 72, 7).all().item<bool>());
    CHECK(nan.sum().item<std::int64_t>() == 7 * 32);
  });
}

TEST_CASE("sliding attention sees the last rows of a path alone, and has one set of bits",
          "[ops]") {
  const Heads heads{4, 2, 20};
  std::mt19937 random(5);
  for (const Segments& segments :
       {Segments{{-1, 0, 200, 0}, {0, 200, 70, 200}, {0, 270, 3, 200}, {1, 273, 130, 270}},
        test::random_segments(12, random)}) {
    const auto qkv = random_rows(heads, test::rows_of(segments));
    for (const std::int64_t window : {1, 2, 16, 63, 64, 65, 150}) {
      const auto expected = masked(heads, segments, qkv, window);
      std::optional<at::Tensor> bits;
      ref::for_each_policy([&](const Policy& policy) {
        INFO(to_string(policy.isa) << ", " << policy.threads << " threads, window " << window);
        const auto out = run(policy, heads, segments, qkv, window);
        CHECK((out.to(at::kDouble) - expected).abs().max().item<double>() < 1e-5);
        if (bits) CHECK(ref::same_bits(out, *bits));
        bits = out;
      });
    }
  }
}

TEST_CASE("a row of sliding attention has the bits of its path alone, whatever is shared",
          "[ops]") {
  const Heads heads{2, 1, 32};
  const auto policy = resolve_policy("portable", "auto", 2);
  const Segments segments{{-1, 0, 130, 0}, {0, 130, 40, 130}, {0, 170, 9, 130}, {1, 179, 75, 170}};
  for (const auto type : kTypes) {
    const auto qkv = random_rows(heads, 254).to(type);
    for (const std::int64_t window : {1, 30, 100, 1000}) {
      const auto whole = run(policy, heads, segments, qkv, window);
      for (std::size_t i = 0; i < segments.size(); ++i) {
        const auto rows =
            at::tensor(test::path_rows(segments, static_cast<std::int64_t>(i)), at::kLong);
        const auto alone =
            run(policy, heads, {{-1, 0, rows.numel(), 0}}, qkv.index_select(0, rows), window);
        const auto of_path = whole.index_select(0, rows);
        CHECK(ref::same_bits(alone, of_path));
      }
      if (window == 1000) CHECK(ref::same_bits(whole, run(policy, heads, segments, qkv)));
    }
  }
}

TEST_CASE("a plan serves several layers, and an empty forest", "[ops]") {
  const Heads heads{2, 2, 16};
  const auto policy = resolve_policy("portable", "auto", 2);
  const Segments segments{{-1, 0, 20, 0}, {0, 20, 7, 20}, {0, 27, 7, 20}};
  auto plan = ops::plan_forest(policy, shape_of(heads, 34), segments);
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const auto qkv = ref::values({34, 6 * 16}, seed).to(kTypes[seed % 2]);
    auto out = at::empty({34, 32}, qkv.options());
    ops::attention_forest(policy, plan, qkv, out);
    CHECK(ref::same_bits(out, path_by_path(heads, segments, qkv)));
  }
  CHECK(run(policy, heads, {}, at::empty({0, 6 * 16})).numel() == 0);
}

TEST_CASE("segments that make no forest are refused", "[ops]") {
  const auto policy = resolve_policy("portable", "auto", 1);
  const auto refused = [&](const Segments& segments, std::int64_t rows) {
    CHECK_THROWS_AS(ops::plan_forest(policy, shape_of({1, 1, 8}, rows), segments), Error);
  };
  CHECK_NOTHROW(
      ops::plan_forest(policy, shape_of({1, 1, 8}, 5), Segments{{-1, 0, 3, 0}, {0, 3, 2, 3}}));
  refused({{-1, 0, 3, 0}, {0, 3, 2, 3}}, 6);   // a row of no segment
  refused({{-1, 0, 3, 0}, {0, 3, 2, 3}}, 4);   // a segment beyond the rows
  refused({{-1, 0, 3, 0}, {0, 4, 1, 3}}, 5);   // a gap
  refused({{-1, 0, 3, 0}, {0, 3, 0, 3}}, 3);   // an empty segment
  refused({{-1, 0, 3, 0}, {1, 3, 2, 3}}, 5);   // its own parent
  refused({{-1, 0, 3, 0}, {-2, 3, 2, 0}}, 5);  // no such parent
  refused({{-1, 0, 3, 0}, {0, 3, 2, 2}}, 5);   // a position before the parent's end
  refused({{-1, 0, 3, 1}}, 3);                 // a root that does not begin at 0
  refused({{-1, 0, INT64_MAX, 0}}, 3);
}
