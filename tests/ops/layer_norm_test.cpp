#include "ops/layer_norm.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "ops/bf16_golden.h"
#include "ops/row_reference.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::ops;
namespace ref = olmo::ops::reference;

namespace {

constexpr float kEps = 1e-5F;

struct Case {
  bool centred;
  bool weighted;
  bool biased;
};

const std::vector<Case> kCases = {{true, false, false},  {true, true, false},  {true, true, true},
                                  {false, false, false}, {false, true, false}, {false, true, true}};

NormParameters parameters_of(const Case& c, std::int64_t columns) {
  NormParameters p;
  if (c.weighted) p.weight = ref::values({columns}, 71);
  if (c.biased) p.bias = ref::values({columns}, 72);
  return p;
}

void forward(const Policy& policy, const Case& c, const at::Tensor& x, const NormParameters& p,
             const at::Tensor& y, const at::Tensor& stats) {
  c.centred ? layer_norm(policy, x, p, kEps, y, stats) : rms_norm(policy, x, p, kEps, y, stats);
}

void backward(const Policy& policy, const Case& c, const NormBackward& args) {
  c.centred ? layer_norm_backward(policy, args) : rms_norm_backward(policy, args);
}

at::Tensor stats_for(const Case& c, std::int64_t rows) {
  return at::empty({rows, c.centred ? 2 : 1}, at::kFloat);
}

struct RowStats {
  float mean;
  float rstd;
};

/// One row by the definition.
RowStats scalar_forward(const Case& c, const float* x, std::int64_t n, const NormParameters& p,
                        float* y) {
  const auto width = static_cast<float>(n);
  const float mean = c.centred ? ref::row_sum(x, n) / width : 0.0F;
  const float squares = ref::row_fold(n, [&](float sum, std::int64_t i) {
    const float d = c.centred ? x[i] - mean : x[i];
    return std::fma(d, d, sum);
  });
  const float rstd = 1.0F / std::sqrt(squares / width + kEps);
  for (std::int64_t i = 0; i < n; ++i) {
    const float h = (c.centred ? x[i] - mean : x[i]) * rstd;
    const float w = c.weighted ? p.weight.const_data_ptr<float>()[i] : 1.0F;
    y[i] = c.biased ? std::fma(h, w, p.bias.const_data_ptr<float>()[i]) : h * w;
  }
  return {mean, rstd};
}

/// The gradient of one row's input by the definition.
void scalar_backward(const Case& c, const float* dy, const float* x, RowStats stats, std::int64_t n,
                     const NormParameters& p, float* dx) {
  const auto width = static_cast<float>(n);
  const auto g = [&](std::int64_t i) {
    return c.weighted ? dy[i] * p.weight.const_data_ptr<float>()[i] : dy[i];
  };
  const auto h = [&](std::int64_t i) {
    return (c.centred ? x[i] - stats.mean : x[i]) * stats.rstd;
  };
  const float mean_g =
      ref::row_fold(n, [&](float sum, std::int64_t i) { return sum + g(i); }) / width;
  const float mean_gh =
      ref::row_fold(n, [&](float sum, std::int64_t i) { return std::fma(g(i), h(i), sum); }) /
      width;
  for (std::int64_t i = 0; i < n; ++i) {
    dx[i] = stats.rstd * std::fma(-h(i), mean_gh, c.centred ? g(i) - mean_g : g(i));
  }
}

struct Run {
  at::Tensor y, stats, dx, dweight, dbias;
};

Run run(const Policy& policy, const Case& c, const at::Tensor& x, const at::Tensor& dy,
        const NormParameters& p) {
  const auto columns = x.size(1);
  Run r{at::empty_like(x), stats_for(c, x.size(0)), at::empty_like(x), {}, {}};
  if (c.weighted) r.dweight = at::zeros({columns});
  if (c.biased) r.dbias = at::zeros({columns});
  forward(policy, c, x, p, r.y, r.stats);
  backward(policy, c,
           {.dy_MD = dy,
            .x_MD = x,
            .stats = r.stats,
            .weight_D = p.weight,
            .dx_MD = r.dx,
            .dweight_D = r.dweight,
            .dbias_D = r.dbias});
  return r;
}

}  // namespace

TEST_CASE("norms have the bits of their definition on every instruction set and thread count",
          "[ops]") {
  for (const std::int64_t columns : {1, 7, 16, 100, 128}) {
    const std::int64_t rows = columns == 100 ? 700 : 5;  // enough for three threads once
    const at::Tensor x = ref::values({rows, columns}, 31, 4.0F) + 0.5;
    const at::Tensor dy = ref::values({rows, columns}, 32);
    for (const auto& c : kCases) {
      const auto p = parameters_of(c, columns);
      at::Tensor y = at::empty_like(x);
      at::Tensor dx = at::empty_like(x);
      at::Tensor dweight = at::zeros({columns});
      at::Tensor dbias = at::zeros({columns});
      for (std::int64_t m = 0; m < rows; ++m) {
        const float* row = x.const_data_ptr<float>() + m * columns;
        const float* dy_row = dy.const_data_ptr<float>() + m * columns;
        const auto stats = scalar_forward(c, row, columns, p, y.data_ptr<float>() + m * columns);
        scalar_backward(c, dy_row, row, stats, columns, p, dx.data_ptr<float>() + m * columns);
        for (std::int64_t i = 0; i < columns; ++i) {
          const float h = (c.centred ? row[i] - stats.mean : row[i]) * stats.rstd;
          dweight.data_ptr<float>()[i] = std::fma(dy_row[i], h, dweight.data_ptr<float>()[i]);
          dbias.data_ptr<float>()[i] += dy_row[i];
        }
      }
      ref::for_each_policy([&](const Policy& policy) {
        const auto r = run(policy, c, x, dy, p);
        INFO(to_string(policy.isa) << " threads " << policy.threads << " columns " << columns
                                   << " centred " << c.centred);
        CHECK(ref::same_bits(r.y, y));
        CHECK(ref::same_bits(r.dx, dx));
        if (c.weighted) CHECK(ref::same_bits(r.dweight, dweight));
        if (c.biased) CHECK(ref::same_bits(r.dbias, dbias));
      });
    }
  }
}

TEST_CASE("gradients of the norms agree with LibTorch's autograd in double within 1e-6", "[ops]") {
  const std::int64_t rows = 37, columns = 96;
  const at::Tensor x = ref::values({rows, columns}, 41, 2.0F) + 0.3;
  const at::Tensor dy = ref::values({rows, columns}, 42);
  for (const auto& c : kCases) {
    const auto p = parameters_of(c, columns);
    const auto leaf = [](const at::Tensor& t) {
      return t.defined() ? t.to(at::kDouble).requires_grad_(true) : t;
    };
    const at::Tensor x64 = leaf(x), w64 = leaf(p.weight), b64 = leaf(p.bias);
    const at::Tensor d = c.centred ? x64 - x64.mean(1, true) : x64;
    at::Tensor y64 = d / (d.square().mean(1, true) + static_cast<double>(kEps)).sqrt();
    if (c.weighted) y64 = y64 * w64;
    if (c.biased) y64 = y64 + b64;
    y64.backward(dy.to(at::kDouble));
    const auto r = run(ref::plain_policy(), c, x, dy, p);
    CHECK(ref::distance(r.y, y64.detach()) < 1e-6);
    CHECK(ref::distance(r.dx, x64.grad()) < 1e-6);
    if (c.weighted) CHECK(ref::distance(r.dweight, w64.grad()) < 1e-6);
    if (c.biased) CHECK(ref::distance(r.dbias, b64.grad()) < 1e-6);
  }
}

TEST_CASE("a norm works on a column range of wider rows, in place, and leaves the rest alone",
          "[ops]") {
  const at::Tensor packed = ref::values({9, 60}, 51);
  const at::Tensor before = packed.clone();
  const auto part = packed.narrow(1, 20, 24);
  const Case c{false, true, false};
  const auto p = parameters_of(c, 24);
  const auto expected = run(ref::plain_policy(), c, part.contiguous(), ref::values({9, 24}, 52), p);
  forward(ref::plain_policy(), c, part, p, part, stats_for(c, 9));
  CHECK(ref::same_bits(part, expected.y));
  CHECK(ref::same_bits(packed.narrow(1, 0, 20), before.narrow(1, 0, 20)));
  CHECK(ref::same_bits(packed.narrow(1, 44, 16), before.narrow(1, 44, 16)));
}

TEST_CASE("an accumulated input gradient is one fused addition to what is stored", "[ops]") {
  const at::Tensor x = ref::values({6, 40}, 61), dy = ref::values({6, 40}, 62),
                   residual = ref::values({6, 40}, 63);
  const Case c{true, false, false};
  const auto alone = run(ref::plain_policy(), c, x, dy, {});
  at::Tensor dx = residual.clone();
  backward(ref::plain_policy(), c,
           {.dy_MD = dy,
            .x_MD = x,
            .stats = alone.stats,
            .weight_D = {},
            .dx_MD = dx,
            .accumulate_dx = true,
            .dweight_D = {},
            .dbias_D = {}});
  CHECK(ref::distance(dx, (residual + alone.dx).to(at::kDouble)) < 1e-6);
  dx.zero_();
  backward(ref::plain_policy(), c,
           {.dy_MD = dy,
            .x_MD = x,
            .stats = alone.stats,
            .weight_D = {},
            .dx_MD = dx,
            .accumulate_dx = true,
            .dweight_D = {},
            .dbias_D = {}});
  CHECK(ref::same_bits(dx, alone.dx));
}

TEST_CASE("a norm's input gradient may overwrite the output gradient", "[ops]") {
  const at::Tensor x = ref::values({6, 40}, 64), dy = ref::values({6, 40}, 65);
  const Case c{true, true, true};
  const auto p = parameters_of(c, 40);
  const auto expected = run(ref::plain_policy(), c, x, dy, p);
  at::Tensor dweight = at::zeros({40}), dbias = at::zeros({40});
  backward(ref::plain_policy(), c,
           {.dy_MD = dy,
            .x_MD = x,
            .stats = expected.stats,
            .weight_D = p.weight,
            .dx_MD = dy,
            .dweight_D = dweight,
            .dbias_D = dbias});
  CHECK(ref::same_bits(dy, expected.dx));
  CHECK(ref::same_bits(dweight, expected.dweight));
}

TEST_CASE("a norm's parameter gradients continue their chain from call to call", "[ops]") {
  const at::Tensor x = ref::values({20, 33}, 66), dy = ref::values({20, 33}, 67);
  const Case c{true, true, true};
  const auto p = parameters_of(c, 33);
  const auto whole = run(ref::plain_policy(), c, x, dy, p);
  at::Tensor dweight = at::zeros({33}), dbias = at::zeros({33}), dx = at::empty({20, 33});
  for (const std::int64_t first : {0, 8}) {
    const auto count = first == 0 ? 8 : 12;
    backward(ref::plain_policy(), c,
             {.dy_MD = dy.narrow(0, first, count),
              .x_MD = x.narrow(0, first, count),
              .stats = whole.stats.narrow(0, first, count),
              .weight_D = p.weight,
              .dx_MD = dx.narrow(0, first, count),
              .dweight_D = dweight,
              .dbias_D = dbias});
  }
  CHECK(ref::same_bits(dweight, whole.dweight));
  CHECK(ref::same_bits(dbias, whole.dbias));
}

TEST_CASE("a NaN stays within its own row of a norm", "[ops]") {
  at::Tensor x = ref::values({3, 50}, 68);
  x[1][17] = std::nan("");
  at::Tensor y = at::empty_like(x);
  layer_norm(ref::plain_policy(), x, {}, kEps, y, at::empty({3, 2}));
  CHECK(y[1].isnan().all().item<bool>());
  CHECK_FALSE(y[0].isnan().any().item<bool>());
  CHECK_FALSE(y[2].isnan().any().item<bool>());
}

TEST_CASE("a norm refuses a shape that does not fit", "[ops]") {
  const at::Tensor x = ref::values({3, 8}, 69);
  CHECK_THROWS_AS(
      layer_norm(ref::plain_policy(), x, {}, kEps, at::empty({3, 7}), at::empty({3, 2})), Error);
  CHECK_THROWS_AS(
      layer_norm(ref::plain_policy(), x, {}, kEps, at::empty({3, 8}), at::empty({3, 1})), Error);
  CHECK_THROWS_AS(layer_norm(ref::plain_policy(), x, {at::ones({7}), {}}, kEps, at::empty({3, 8}),
                             at::empty({3, 2})),
                  Error);
  CHECK_THROWS_AS(layer_norm(ref::plain_policy(), x, {{}, at::ones({8})}, kEps, at::empty({3, 8}),
                             at::empty({3, 2})),
                  Error);
  CHECK_THROWS_AS(
      layer_norm(ref::plain_policy(), x.t(), {}, kEps, at::empty({8, 3}), at::empty({8, 2})),
      Error);
}

namespace {

at::Tensor as(bool bf16, const at::Tensor& t) { return bf16 && t.defined() ? ref::narrowed(t) : t; }

/// The types of a norm's tensors: true for bf16.
struct Types {
  bool x, y, dy, dx, weight, bias;
};

struct Gradients {
  at::Tensor dx, dweight, dbias;
};

/// The RMS norm of a bf16 x by OLMo's steps, made of the fp32 norm without parameters.
at::Tensor rms_of_bf16(const at::Tensor& x, const NormParameters& p, const at::Tensor& stats) {
  at::Tensor h = at::empty_like(x);
  rms_norm(ref::plain_policy(), x, {}, kEps, h, stats);
  h = ref::rounded(h);
  if (!p.weight.defined()) return h;
  const bool bf16 = p.weight.scalar_type() == at::kBFloat16;
  const at::Tensor product = h * ref::widened(p.weight);
  if (!p.bias.defined()) return product;
  if (bf16) return ref::rounded(product) + ref::widened(p.bias);
  return (h.to(at::kDouble) * p.weight.to(at::kDouble) + p.bias.to(at::kDouble)).to(at::kFloat);
}

Gradients rms_gradients_of_bf16(const at::Tensor& x, const at::Tensor& dy, const NormParameters& p,
                                const at::Tensor& stats) {
  at::Tensor g = dy, h = at::empty_like(x), dx = at::empty_like(x);
  rms_norm(ref::plain_policy(), x, {}, kEps, h, at::empty_like(stats));
  h = ref::rounded(h);
  if (p.weight.defined()) g = ref::rounded(dy * ref::widened(p.weight));
  rms_norm_backward(ref::plain_policy(), {.dy_MD = g, .x_MD = x, .stats = stats, .dx_MD = dx});
  const bool bf16 = p.weight.defined() && p.weight.scalar_type() == at::kBFloat16;
  at::Tensor dweight = at::zeros({x.size(1)}), dbias = at::zeros({x.size(1)});
  for (std::int64_t m = 0; m < x.size(0); ++m) {
    for (std::int64_t i = 0; i < x.size(1); ++i) {
      const float a = dy[m].const_data_ptr<float>()[i], b = h[m].const_data_ptr<float>()[i];
      float& sum = dweight.data_ptr<float>()[i];
      sum = bf16 ? sum + ref::rounded(at::full({1}, a * b)).item<float>() : std::fma(a, b, sum);
      dbias.data_ptr<float>()[i] += a;
    }
  }
  return {dx, dweight, dbias};
}

void check_types(const Case& c, const Types& types) {
  const std::int64_t rows = 7, columns = 45;
  const at::Tensor x = as(types.x, ref::values({rows, columns}, 81, 3.0F) + 0.5);
  const at::Tensor dy = as(types.dy, ref::values({rows, columns}, 82));
  const at::Tensor held = as(types.dx, ref::values({rows, columns}, 83));
  NormParameters p = parameters_of(c, columns);
  p = {as(types.weight, p.weight), as(types.bias, p.bias)};
  const NormParameters wide{p.weight.defined() ? ref::widened(p.weight) : p.weight,
                            p.bias.defined() ? ref::widened(p.bias) : p.bias};
  const auto fp32 = run(ref::plain_policy(), c, ref::widened(x), ref::widened(dy), wide);
  at::Tensor y = fp32.y;
  Gradients expected{fp32.dx, fp32.dweight, fp32.dbias};
  if (!c.centred && types.x) {
    y = rms_of_bf16(ref::widened(x), p, stats_for(c, rows));
    expected = rms_gradients_of_bf16(ref::widened(x), ref::widened(dy), p, fp32.stats);
  }
  const bool rounds = types.x || types.dx;
  const at::Tensor dx = as(types.dx, rounds ? ref::rounded(expected.dx) : expected.dx);
  ref::for_each_policy([&](const Policy& policy) {
    at::Tensor out = at::empty_like(x, types.y ? at::kBFloat16 : at::kFloat);
    const at::Tensor stats = stats_for(c, rows);
    forward(policy, c, x, p, out, stats);
    CHECK(ref::same_bits(out, as(types.y, y)));
    CHECK(ref::same_bits(stats, fp32.stats));
    NormBackward args{.dy_MD = dy,
                      .x_MD = x,
                      .stats = stats,
                      .weight_D = p.weight,
                      .dx_MD = at::empty_like(held),
                      .rounding = Rounding::kBf16};
    if (c.weighted) args.dweight_D = at::zeros({columns});
    if (c.biased) args.dbias_D = at::zeros({columns});
    backward(policy, c, args);
    CHECK(ref::same_bits(args.dx_MD, dx));
    if (c.weighted) CHECK(ref::same_bits(args.dweight_D, ref::rounded(expected.dweight)));
    if (c.biased) CHECK(ref::same_bits(args.dbias_D, ref::rounded(expected.dbias)));
    if (!rounds) return;  // one fused addition, as in the test of fp32
    args.dx_MD = held.clone();
    args.accumulate_dx = true;
    args.dweight_D = args.dbias_D = at::Tensor();
    backward(policy, c, args);
    CHECK(ref::same_bits(args.dx_MD, as(types.dx, ref::widened(dx) + ref::widened(held))));
  });
}

}  // namespace

TEST_CASE("norms of bf16 tensors compute in fp32 and round where OLMo does", "[ops]") {
  for (const auto& c : kCases) {
    for (int bits = 0; bits < 64; ++bits) {
      const auto bf16 = [&](int tensor) { return (bits >> tensor & 1) != 0; };
      const Types types{bf16(0), bf16(1), bf16(2), bf16(3), bf16(4), bf16(5)};
      if ((types.weight && !c.weighted) || (types.bias && !c.biased)) continue;
      INFO("centred " << c.centred << " weighted " << c.weighted << " biased " << c.biased
                      << ", in bf16: x " << types.x << " y " << types.y << " dy " << types.dy
                      << " dx " << types.dx << " weight " << types.weight << " bias "
                      << types.bias);
      check_types(c, types);
    }
  }
}

TEST_CASE("a NaN or an infinity of bf16 stays within its own row of a norm", "[ops]") {
  for (const float odd : {NAN, INFINITY, -INFINITY}) {
    at::Tensor x = ref::values({3, 50}, 84);
    x[1][17] = odd;
    for (const auto norm : {layer_norm, rms_norm}) {
      const at::Tensor y = at::empty({3, 50}, at::kBFloat16);
      norm(ref::plain_policy(), ref::narrowed(x), {}, kEps, y,
           at::empty({3, norm == layer_norm ? 2 : 1}));
      CHECK(y[1].isnan().any().item<bool>());
      CHECK(at::isfinite(y[0]).all().item<bool>());
      CHECK(at::isfinite(y[2]).all().item<bool>());
    }
  }
}

TEST_CASE("norms of bf16 and fp32 rows are the reference's, with no more error than LibTorch's",
          "[ops]") {
  const ref::Bf16Golden golden;
  for (const std::string name : {"norm_bf16", "norm_fp32"}) {
    const at::Tensor x = golden.in(name + ".x"), dy = golden.in(name + ".dy");
    const at::Tensor y = at::empty_like(dy), dx = at::empty_like(x), stats = at::empty({160, 2});
    layer_norm(ref::plain_policy(), x, {}, kEps, y, stats);
    layer_norm_backward(ref::plain_policy(), {.dy_MD = dy, .x_MD = x, .stats = stats, .dx_MD = dx});
    const at::Tensor leaf = x.to(at::kDouble).requires_grad_(true);
    const at::Tensor y64 = at::layer_norm(leaf, {72}, {}, {}, 1e-5);
    y64.backward(dy.to(at::kDouble));
    golden.check(name + ".y", y);
    golden.check_error(name + ".y", y, y64.detach());
    golden.check(name + ".d_x", dx);
    golden.check_error(name + ".d_x", dx, leaf.grad());
  }
}

namespace {

/// Share of elements that are equal in bf16.
double equal_share(const at::Tensor& a, const at::Tensor& b) {
  return ref::narrowed(a).eq(ref::narrowed(b)).to(at::kDouble).mean().item<double>();
}

}  // namespace

TEST_CASE("the RMS norm of bf16 rounds as OLMo's does when LibTorch computes it step by step",
          "[ops]") {
  const std::int64_t rows = 60, columns = 96;
  for (const auto weights : {at::kBFloat16, at::kFloat}) {
    const at::Tensor x = ref::narrowed(ref::values({rows, columns}, 86, 3.0F));
    const at::Tensor dy = ref::narrowed(ref::values({rows, columns}, 87));
    const NormParameters p{ref::values({columns}, 88).to(weights),
                           ref::values({columns}, 89).to(weights)};
    const auto leaf = [](const at::Tensor& t) { return t.clone().requires_grad_(true); };
    const at::Tensor x0 = leaf(x), w0 = leaf(p.weight), b0 = leaf(p.bias);
    const at::Tensor wide = x0.to(at::kFloat);
    const at::Tensor h = wide * at::rsqrt(wide.pow(2).mean(-1, true) + kEps);
    const at::Tensor y0 = (w0 * h.to(at::kBFloat16) + b0).to(at::kBFloat16);
    y0.backward(dy);
    const at::Tensor y = at::empty_like(x), stats = at::empty({rows, 1});
    const NormBackward back{.dy_MD = dy,
                            .x_MD = x,
                            .stats = stats,
                            .weight_D = p.weight,
                            .dx_MD = at::empty_like(x),
                            .dweight_D = at::zeros({columns}),
                            .dbias_D = at::zeros({columns}),
                            .rounding = Rounding::kBf16};
    rms_norm(ref::plain_policy(), x, p, kEps, y, stats);
    rms_norm_backward(ref::plain_policy(), back);
    // What differs has its sums in another order.
    CHECK(equal_share(y, y0) >= 0.998);
    CHECK(equal_share(back.dx_MD, x0.grad()) >= 0.998);
    CHECK(equal_share(back.dweight_D, w0.grad()) >= 0.98);
    CHECK(equal_share(back.dbias_D, b0.grad()) >= 0.98);
  }
}
