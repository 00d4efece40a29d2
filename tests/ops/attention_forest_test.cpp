#include "ops/attention_forest.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "ops/row_reference.h"
#include "support/catch.h"
#include "support/random_forest.h"

using namespace olmo;
using ops::AttentionShape;
namespace ref = olmo::ops::reference;

namespace {

using Segments = std::vector<TokenSegment>;

struct Heads {
  std::int64_t n_heads, n_kv_heads, head_dim;
};

AttentionShape shape_of(const Heads& heads, std::int64_t rows) {
  return {1, rows, heads.n_heads, heads.n_kv_heads, heads.head_dim};
}

at::Tensor random_rows(const Heads& h, std::int64_t rows) {
  return ref::values({rows, (h.n_heads + 2 * h.n_kv_heads) * h.head_dim}, 1, 3.0F);
}

at::Tensor run(const Policy& policy, const Heads& heads, const Segments& segments,
               const at::Tensor& qkv) {
  auto plan = ops::plan_forest(policy, shape_of(heads, qkv.size(0)), segments);
  auto out = at::full({qkv.size(0), heads.n_heads * heads.head_dim}, NAN);
  ops::attention_forest(policy, plan, qkv, out);
  return out;
}

// attention() of each segment's path alone.
at::Tensor path_by_path(const Heads& heads, const Segments& segments, const at::Tensor& qkv) {
  const auto policy = resolve_policy("portable", "auto", 1);
  auto out = at::full({qkv.size(0), heads.n_heads * heads.head_dim}, NAN);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto rows =
        at::tensor(test::path_rows(segments, static_cast<std::int64_t>(i)), at::kLong);
    const auto length = rows.numel();
    auto path_out = at::empty({length, out.size(1)}), lse = at::empty({1, heads.n_heads, length});
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
    for (const std::size_t count : {1, 2, 9, 25}) {
      const auto segments = test::random_segments(count, random);
      check_forest(heads, segments, random_rows(heads, test::rows_of(segments)));
    }
  }
}

TEST_CASE("a long prefix with many short children keeps the bits", "[ops]") {
  const Heads heads{2, 2, 32};
  Segments segments{{-1, 0, 301, 0}};
  for (std::int64_t i = 0; i < 60; ++i)
    segments.push_back({0, test::rows_of(segments), 1 + i % 21, 301});
  check_forest(heads, segments, random_rows(heads, test::rows_of(segments)));
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

TEST_CASE("a plan serves several layers, and an empty forest", "[ops]") {
  const Heads heads{2, 2, 16};
  const auto policy = resolve_policy("portable", "auto", 2);
  const Segments segments{{-1, 0, 20, 0}, {0, 20, 7, 20}, {0, 27, 7, 20}};
  auto plan = ops::plan_forest(policy, shape_of(heads, 34), segments);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto qkv = ref::values({34, 6 * 16}, seed);
    auto out = at::empty({34, 32});
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
