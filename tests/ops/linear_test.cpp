#include "ops/linear.h"

#include <cmath>
#include <limits>
#include <random>

#include <ATen/ATen.h>

#include "core/compute/libtorch.h"
#include "core/error.h"
#include "ops/bf16_golden.h"
#include "ops/dispatch.h"
#include "ops/row_reference.h"
#include "support/catch.h"

using namespace olmo;
using ops::reference::fast_policies;
using ops::reference::for_each_policy;
using ops::reference::same_bits;

namespace {

std::string text(const Policy& p) {
  return to_string(p.isa) + ", " + std::to_string(p.threads) + " threads";
}

at::Tensor random_tensor(std::int64_t rows, std::int64_t columns, unsigned seed,
                         bool nasty = false) {
  static const float kNasty[] = {0.0F,   -0.0F,           1e-40F, -3e-45F, 1e30F,
                                 -3e38F, 1.17549435e-38F, 1.0F,   -1.0F};
  auto t = at::empty({rows, columns}, at::kFloat);
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  auto* data = t.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < t.numel(); ++i)
    data[i] = nasty && bits() % 4 == 0 ? kNasty[bits() % 9] : normal(bits);
  return t;
}

// The definition, element by element.
template <class A, class B>
void reference(at::Tensor& c, std::int64_t k, bool accumulate, A a, B b) {
  for (std::int64_t i = 0; i < c.size(0); ++i) {
    for (std::int64_t j = 0; j < c.size(1); ++j) {
      float& out = c.mutable_data_ptr<float>()[i * c.size(1) + j];
      float sum = accumulate ? out : 0.0F;
      for (std::int64_t p = 0; p < k; ++p) sum = std::fmaf(a(i, p), b(p, j), sum);
      out = sum;
    }
  }
}

struct Case {
  std::int64_t m, n, k;
};

void check_products(const Case& s, bool nasty) {
  INFO("m " << s.m << ", n " << s.n << ", k " << s.k << ", nasty " << nasty);
  const auto x = random_tensor(s.m, s.k, 1, nasty), w = random_tensor(s.n, s.k, 2, nasty);
  const auto dy = random_tensor(s.m, s.n, 3, nasty), old = random_tensor(s.n, s.k, 4, nasty);
  const auto at = [](const at::Tensor& t) {
    return [p = t.const_data_ptr<float>(), width = t.size(1)](std::int64_t i, std::int64_t j) {
      return p[i * width + j];
    };
  };
  const auto xv = at(x), wv = at(w), dyv = at(dy);
  auto y = at::empty({s.m, s.n}), dx = at::empty({s.m, s.k}), dw = at::empty({s.n, s.k}),
       more = old.clone();
  const auto dy_t = [&](auto i, auto p) { return dyv(p, i); };
  reference(y, s.k, false, xv, [&](auto p, auto j) { return wv(j, p); });
  reference(dx, s.n, false, dyv, wv);
  reference(dw, s.m, false, dy_t, xv);
  reference(more, s.m, true, dy_t, xv);
  for_each_policy([&](const Policy& policy) {
    INFO(text(policy));
    auto got_y = at::full({s.m, s.n}, NAN), got_dx = at::full({s.m, s.k}, NAN),
         got_dw = at::full({s.n, s.k}, NAN);
    auto got_more = old.clone();
    ops::linear(policy, x, w, got_y);
    ops::linear_backward_input(policy, dy, w, got_dx);
    ops::linear_backward_weight(policy, dy, x, got_dw, false);
    ops::linear_backward_weight(policy, dy, x, got_more, true);
    CHECK(same_bits(got_y, y));
    CHECK(same_bits(got_dx, dx));
    CHECK(same_bits(got_dw, dw));
    CHECK(same_bits(got_more, more));
  });
}

}  // namespace

TEST_CASE("a product takes no more threads than its work is worth waking", "[ops]") {
  Policy policy = resolve_policy("portable", "auto", 4);
  policy.operations_a_thread = 1000;
  CHECK(ops::useful_threads(policy, 0) == 1);
  CHECK(ops::useful_threads(policy, 2999) == 2);
  CHECK(ops::useful_threads(policy, 1'000'000) == 4);
}

TEST_CASE("linear products are the definition's chains of fma bit for bit", "[ops]") {
  for (const Case& s : {Case{1, 1, 1}, Case{2, 3, 1}, Case{1, 33, 7}, Case{13, 1, 31},
                        Case{14, 32, 16}, Case{15, 33, 17}, Case{7, 17, 513}, Case{113, 29, 5},
                        Case{29, 97, 64}, Case{61, 67, 71}, Case{3, 16, 1031}, Case{17, 40, 1024},
                        Case{0, 4, 4}, Case{4, 0, 4}, Case{4, 5, 0}, Case{1025, 2, 3}}) {
    check_products(s, false);
  }
}

TEST_CASE("linear products keep the bits of subnormals, huge values and signed zeros", "[ops]") {
  for (const Case& s : {Case{5, 7, 9}, Case{31, 35, 40}, Case{17, 65, 130}})
    check_products(s, true);
}

TEST_CASE("products with bf16 inputs on either side have the bits of the same numbers in fp32",
          "[ops]") {
  for (const Case& s : {Case{1, 1, 1}, Case{3, 33, 17}, Case{15, 70, 64}, Case{29, 31, 1031},
                        Case{2, 3, 0}, Case{200, 65, 130}, Case{65, 200, 33}}) {
    const auto x = random_tensor(s.m, s.k, 1, true).to(at::kBFloat16);
    const auto w = random_tensor(s.n, s.k, 2, true).to(at::kBFloat16);
    const auto dy = random_tensor(s.m, s.n, 3, true).to(at::kBFloat16);
    const auto old = random_tensor(s.n, s.k, 4);
    const auto outputs = [&](const Policy& policy, at::ScalarType first, at::ScalarType second) {
      auto y = at::full({s.m, s.n}, NAN), dx = at::full({s.m, s.k}, NAN);
      auto dw = at::full({s.n, s.k}, NAN), more = old.clone();
      ops::linear(policy, x.to(first), w.to(second), y);
      ops::linear_backward_input(policy, dy.to(first), w.to(second), dx);
      ops::linear_backward_weight(policy, dy.to(first), x.to(second), dw, false);
      ops::linear_backward_weight(policy, dy.to(first), x.to(second), more, true);
      return std::vector<at::Tensor>{y, dx, dw, more};
    };
    for_each_policy([&](const Policy& policy) {
      const auto expected = outputs(policy, at::kFloat, at::kFloat);
      for (const auto first : {at::kFloat, at::kBFloat16}) {
        for (const auto second : {at::kFloat, at::kBFloat16}) {
          const auto found = outputs(policy, first, second);
          INFO(text(policy) << ", m " << s.m << ", n " << s.n << ", k " << s.k << ", bf16 "
                            << (first == at::kBFloat16) << (second == at::kBFloat16));
          for (std::size_t i = 0; i < found.size(); ++i) CHECK(same_bits(found[i], expected[i]));
        }
      }
    });
  }
}

namespace {

/// The three products of bf16 numbers, with their outputs as OLMo has them under bf16.
struct Bf16Products {
  at::Tensor x, w, dy, old;

  explicit Bf16Products(const Case& s)
      : x(random_tensor(s.m, s.k, 1, true).to(at::kBFloat16)),
        w(random_tensor(s.n, s.k, 2, true).to(at::kBFloat16)),
        dy(random_tensor(s.m, s.n, 3, true).to(at::kBFloat16)),
        old(random_tensor(s.n, s.k, 4)) {}

  /// y, dx, dw, and dw continued from `old`.
  [[nodiscard]] std::vector<at::Tensor> run(const ops::Context& context, at::ScalarType type,
                                            ops::Rounding rounding) const {
    auto y = at::full({x.size(0), w.size(0)}, NAN, type), dx = at::full(x.sizes(), NAN, type);
    auto dw = at::full(w.sizes(), NAN), more = old.clone();
    ops::linear(context, x, w, y);
    ops::linear_backward_input(context, dy, w, dx);
    ops::linear_backward_weight(context, dy, x, dw, false, rounding);
    ops::linear_backward_weight(context, dy, x, more, true, rounding);
    return {y, dx, dw, more};
  }
};

}  // namespace

TEST_CASE("a product in bf16 is its fp32 chain rounded once, at its end", "[ops]") {
  for (const Case& s :
       {Case{1, 1, 1}, Case{3, 33, 17}, Case{15, 70, 64}, Case{29, 31, 1031}, Case{2, 3, 0},
        Case{0, 2, 3}, Case{200, 65, 130}, Case{65, 700, 33}, Case{30, 1500, 600}}) {
    const Bf16Products products(s);
    for_each_policy([&](const Policy& policy) {
      if (policy.isa == Isa::kPlain && s.n > 1000) return;
      INFO(text(policy) << ", m " << s.m << ", n " << s.n << ", k " << s.k);
      const auto chains = products.run(policy, at::kFloat, ops::Rounding::kNone);
      const auto found = products.run(policy, at::kBFloat16, ops::Rounding::kBf16);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const auto expected = chains[i].to(at::kBFloat16).to(at::kFloat);
        CHECK(same_bits(found[i].to(at::kFloat), expected));
      }
    });
  }
}

TEST_CASE(
    "a product in bf16 keeps its sums in fp32 where one block of k follows another over all "
    "columns",
    "[ops]") {
  const Bf16Products products({3, 700, 17000});  // beyond what is kept packed of k
  const auto policy = resolve_policy("portable", "auto", 1);
  apply_policy(policy);
  auto chains = at::empty({3, 700}), found = at::empty({3, 700}, at::kBFloat16);
  ops::linear(policy, products.x, products.w, chains);
  ops::linear(policy, products.x, products.w, found);
  CHECK(same_bits(found.to(at::kFloat), chains.to(at::kBFloat16).to(at::kFloat)));
}

TEST_CASE("weight gradients rounded after the last block of rows equal one rounded call", "[ops]") {
  const Bf16Products products({1300, 70, 90});
  const auto policy = resolve_policy("portable", "auto", 2);
  apply_policy(policy);
  auto whole = at::empty({70, 90}), parts = at::empty({70, 90});
  ops::linear_backward_weight(policy, products.dy, products.x, whole, false, ops::Rounding::kBf16);
  std::int64_t begin = 0;
  for (const std::int64_t rows : {1, 511, 788, 0}) {
    ops::linear_backward_weight(policy, products.dy.narrow(0, begin, rows),
                                products.x.narrow(0, begin, rows), parts, begin > 0,
                                rows == 0 ? ops::Rounding::kBf16 : ops::Rounding::kNone);
    begin += rows;
  }
  CHECK(same_bits(parts, whole));
}

TEST_CASE(
    "a product has the same bits, in the workspace that was planned, however fast its threads are",
    "[ops]") {
  std::mt19937 bits(5);
  Policy policy = resolve_policy("portable", "auto", 4);
  policy.operations_a_thread = 1;
  apply_policy(policy);
  for (const Case& s : {Case{5, 7, 9}, Case{130, 300, 70}, Case{2100, 40, 600}, Case{90, 3000, 700},
                        Case{700, 900, 300}}) {
    const Bf16Products products(s);
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const auto rounding = type == at::kFloat ? ops::Rounding::kNone : ops::Rounding::kBf16;
      const auto expected = products.run(policy, type, rounding);
      const auto planned = ops::linear_workspace(policy, s.m, s.n, s.k, type);
      for (int draw = 0; draw < 4; ++draw) {
        ops::Workspace workspace(4);
        std::vector<ops::ThreadSpeeds::Share> shares(4);
        for (auto& share : shares) share = {static_cast<double>(1 + bits() % 20), 1};
        for (int i = 0; i < 5; ++i) workspace.speeds().learn(shares);
        INFO("m " << s.m << ", n " << s.n << ", k " << s.k << ", draw " << draw);
        const auto found = products.run(ops::Context(policy, workspace), type, rounding);
        for (std::size_t i = 0; i < found.size(); ++i)
          CHECK(same_bits(found[i].to(at::kFloat), expected[i].to(at::kFloat)));
        CHECK(workspace.bytes() <=
              4 * ops::Workspace::bytes_for(static_cast<std::size_t>(planned)));
      }
    }
  }
}

TEST_CASE("the workspace that is planned for products of bf16 has room for what is widened",
          "[ops]") {
  const auto policy = resolve_policy("portable", "auto", 1);
  apply_policy(policy);
  const Case s{1000, 1200, 1000};  // of whose products the one that widens most is the forward one
  ops::Workspace workspace(1);
  (void)Bf16Products(s).run(ops::Context(policy, workspace), at::kBFloat16, ops::Rounding::kBf16);
  const auto planned = ops::linear_workspace(policy, s.m, s.n, s.k, at::kBFloat16);
  CHECK(workspace.bytes() <= ops::Workspace::bytes_for(static_cast<std::size_t>(planned)));
}

TEST_CASE("products in bf16 are the reference's, with no more error than LibTorch's", "[ops]") {
  const ops::reference::Bf16Golden golden;
  const auto x = golden.in("linear.x"), w = golden.in("linear.w"), dy = golden.in("linear.dy");
  auto y = at::empty({160, 112}, at::kBFloat16), dx = at::empty({160, 96}, at::kBFloat16);
  auto dw = at::empty({112, 96});
  const auto policy = resolve_policy("portable", "auto", 1);
  ops::linear(policy, x, w, y);
  ops::linear_backward_input(policy, dy, w, dx);
  ops::linear_backward_weight(policy, dy, x, dw, false, ops::Rounding::kBf16);
  const auto exact = [](const at::Tensor& t) { return t.to(at::kDouble); };
  golden.check("linear.y", y);
  golden.check_error("linear.y", y, exact(x).mm(exact(w).t()));
  golden.check("linear.d_x", dx);
  golden.check_error("linear.d_x", dx, exact(dy).mm(exact(w)));
  golden.check("linear.d_w", dw);
  golden.check_error("linear.d_w", dw, exact(dy).t().mm(exact(x)));
}

TEST_CASE("linear passes infinities and NaN to exactly the outputs that use them", "[ops]") {
  auto x = random_tensor(20, 30, 1), w = random_tensor(40, 30, 2);
  x.mutable_data_ptr<float>()[3 * 30 + 5] = std::numeric_limits<float>::infinity();
  x.mutable_data_ptr<float>()[7 * 30 + 29] = NAN;
  for_each_policy([&](const Policy& policy) {
    INFO(text(policy));
    auto y = at::empty({20, 40});
    ops::linear(policy, x, w, y);
    for (std::int64_t i = 0; i < 20; ++i) {
      const auto row = y[i];
      CHECK(at::isnan(row).all().item<bool>() == (i == 7));
      CHECK(at::isinf(row).all().item<bool>() == (i == 3));
    }
  });
}

TEST_CASE("a row of a linear layer has the same bits alone and in a batch", "[ops]") {
  const auto policy = resolve_policy("portable", "auto", 2);
  apply_policy(policy);
  const auto x = random_tensor(300, 700, 1), w = random_tensor(130, 700, 2),
             dy = random_tensor(300, 130, 3);
  auto y = at::empty({300, 130}), dx = at::empty({300, 700});
  ops::linear(policy, x, w, y);
  ops::linear_backward_input(policy, dy, w, dx);
  for (const std::int64_t begin : {0, 7, 255}) {
    const std::int64_t rows = begin == 0 ? 1 : 45;
    auto part_y = at::empty({rows, 130}), part_dx = at::empty({rows, 700});
    ops::linear(policy, x.narrow(0, begin, rows).contiguous(), w, part_y);
    ops::linear_backward_input(policy, dy.narrow(0, begin, rows).contiguous(), w, part_dx);
    CHECK(same_bits(part_y, y.narrow(0, begin, rows).contiguous()));
    CHECK(same_bits(part_dx, dx.narrow(0, begin, rows).contiguous()));
  }
}

TEST_CASE("weight gradients accumulated over blocks of rows equal one call over all rows",
          "[ops]") {
  const auto policy = resolve_policy("portable", "auto", 2);
  apply_policy(policy);
  const auto x = random_tensor(1300, 70, 1), dy = random_tensor(1300, 90, 2);
  auto whole = at::empty({90, 70}), parts = at::empty({90, 70});
  ops::linear_backward_weight(policy, dy, x, whole, false);
  std::int64_t begin = 0;
  for (const std::int64_t rows : {1, 511, 700, 88}) {
    ops::linear_backward_weight(policy, dy.narrow(0, begin, rows), x.narrow(0, begin, rows), parts,
                                begin > 0);
    begin += rows;
  }
  CHECK(same_bits(parts, whole));
}

TEST_CASE("large products have the same bits on every instruction set and thread count", "[ops]") {
  // Beyond one block of rows, columns and summed indices of every blocking.
  const auto x = random_tensor(2100, 1100, 1), w = random_tensor(1500, 1100, 2);
  at::Tensor first;
  for_each_policy([&](const Policy& policy) {
    if (policy.isa == Isa::kPlain) return;
    auto y = at::empty({2100, 1500});
    ops::linear(policy, x, w, y);
    if (!first.defined()) first = y;
    INFO(text(policy));
    CHECK(same_bits(y, first));
  });
  if (!first.defined()) return;
  const float* a = x.const_data_ptr<float>();
  const float* b = w.const_data_ptr<float>();
  for (std::int64_t sample = 0; sample < 500; ++sample) {
    const std::int64_t i = sample * 997 % 2100, j = sample * 1009 % 1500;
    float sum = 0;
    for (std::int64_t p = 0; p < 1100; ++p) sum = std::fmaf(a[i * 1100 + p], b[j * 1100 + p], sum);
    CHECK(first.const_data_ptr<float>()[i * 1500 + j] == sum);
  }
}

namespace {

double relative_rms(const at::Tensor& a, const at::Tensor& b) {
  return ops::reference::relative_rms(a, b);
}

/// The three products in every combination of types, then weight gradients continued from `old` and
/// rounded, in double beside them.
struct ProductsOfTypes {
  at::Tensor x, w, dy, old;

  ProductsOfTypes(const Case& s, at::ScalarType left, at::ScalarType right)
      : x(random_tensor(s.m, s.k, 1).to(left)),
        w(random_tensor(s.n, s.k, 2).to(right)),
        dy(random_tensor(s.m, s.n, 3).to(left)),
        old(random_tensor(s.n, s.k, 4)) {}

  [[nodiscard]] std::vector<at::Tensor> run(const Policy& policy, at::ScalarType type) const {
    apply_policy(policy);
    const auto xr = x.to(w.scalar_type());
    auto y = at::empty({x.size(0), w.size(0)}, type), dx = at::empty(x.sizes(), type);
    auto dw = at::empty(w.sizes()), more = old.clone(), rounded = dw.clone(), both = old.clone();
    ops::linear(policy, x, w, y);
    ops::linear_backward_input(policy, dy, w, dx);
    ops::linear_backward_weight(policy, dy, xr, dw, false);
    ops::linear_backward_weight(policy, dy, xr, more, true);
    ops::linear_backward_weight(policy, dy, xr, rounded, false, ops::Rounding::kBf16);
    ops::linear_backward_weight(policy, dy, xr, both, true, ops::Rounding::kBf16);
    return {y, dx, dw, more, rounded, both};
  }
  [[nodiscard]] std::vector<at::Tensor> exact() const {
    const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
    const auto dw = wide(dy).t().mm(wide(x.to(w.scalar_type())));
    return {wide(x).mm(wide(w).t()), wide(dy).mm(wide(w)), dw, dw + wide(old), dw, dw + wide(old)};
  }
};

/// Sums of fp32 in another order differ by the random walk of their roundings, 2^-24 each. Rounded
/// to bf16 (2^-9), most elements are equal, and the error to exact values is the rounding's.
void check_near(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected,
                const std::vector<at::Tensor>& exact, const Case& s, at::ScalarType type) {
  const double walk = 0x1p-23 * std::sqrt(static_cast<double>(s.m + s.n + s.k));
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("output " << i);
    CHECK(found[i].scalar_type() == expected[i].scalar_type());
    const bool rounded = i > 3 || (i < 2 && type == at::kBFloat16);
    CHECK(relative_rms(found[i], expected[i]) <= (rounded ? 4e-4 : walk));
    if (rounded && i < 2)
      CHECK(relative_rms(found[i], exact[i]) <= 1.05 * relative_rms(expected[i], exact[i]));
  }
}

}  // namespace

TEST_CASE("fast linear products agree with the portable ones within rounding, in every type",
          "[ops]") {
  const auto portable = resolve_policy("portable", "auto", 2);
  for (const Case& s : {Case{50, 70, 60}, Case{1, 3, 1031}, Case{130, 65, 700}, Case{4, 5, 0}}) {
    for (const auto left : {at::kFloat, at::kBFloat16}) {
      for (const auto right : {at::kFloat, at::kBFloat16}) {
        const bool narrow = left == at::kBFloat16 && right == at::kBFloat16;
        for (const auto type : {at::kFloat, at::kBFloat16}) {
          if (type == at::kBFloat16 && !narrow) continue;
          const ProductsOfTypes products(s, left, right);
          INFO("m " << s.m << ", n " << s.n << ", k " << s.k << ", " << at::toString(left) << " "
                    << at::toString(right) << " -> " << at::toString(type));
          const auto expected = products.run(portable, type), exact = products.exact();
          for (const Policy& fast : fast_policies(2))
            check_near(products.run(fast, type), expected, exact, s, type);
        }
      }
    }
  }
  apply_policy(resolve_policy("portable", "auto", 1));
}

TEST_CASE("linear refuses tensors of the wrong shape or layout", "[ops]") {
  const auto policy = resolve_policy("portable", "auto", 1);
  const auto x = at::zeros({4, 6}), w = at::zeros({5, 6});
  auto y = at::zeros({4, 5}), transposed = at::zeros({5, 4}).t(),
       doubles = at::zeros({4, 5}, at::kDouble);
  CHECK_NOTHROW(ops::linear(policy, x, w, y));
  CHECK_THROWS_AS(ops::linear(policy, x, w, transposed), Error);
  CHECK_THROWS_AS(ops::linear(policy, x, w, doubles), Error);
  CHECK_THROWS_AS(ops::linear(policy, x, at::zeros({5, 7}), y), Error);
  CHECK_THROWS_AS(ops::linear(policy, at::zeros({6}), w, y), Error);
}

TEST_CASE("a product is bf16 only where both its inputs are, a weight gradient never", "[ops]") {
  const auto policy = resolve_policy("portable", "auto", 1);
  const auto fp32 = at::zeros({4, 4}), bf16 = fp32.to(at::kBFloat16);
  auto out = at::zeros({4, 4}, at::kBFloat16);
  CHECK_NOTHROW(ops::linear(policy, bf16, bf16, out));
  CHECK_NOTHROW(ops::linear_backward_input(policy, bf16, bf16, out));
  CHECK_THROWS_AS(ops::linear(policy, bf16, fp32, out), Error);
  CHECK_THROWS_AS(ops::linear_backward_input(policy, fp32, bf16, out), Error);
  CHECK_THROWS_AS(ops::linear_backward_weight(policy, bf16, bf16, out, false), Error);
}
