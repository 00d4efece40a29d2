#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <ATen/ATen.h>

#include "core/compute/libtorch.h"
#include "core/error.h"
#include "ops/bf16_golden.h"
#include "ops/row_reference.h"
#include "support/catch.h"

using namespace olmo;
namespace ref = olmo::ops::reference;
using ops::AttentionShape;

namespace {

at::Tensor random_tensor(at::IntArrayRef sizes, unsigned seed, float scale = 1.0F) {
  auto t = at::empty(sizes, at::kFloat);
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < t.numel(); ++i)
    t.mutable_data_ptr<float>()[i] = scale * normal(bits);
  return t;
}

struct Inputs {
  AttentionShape shape;
  at::Tensor qkv, dout;
};

struct Results {
  at::Tensor out, lse, dqkv;
};

Inputs inputs_for(const AttentionShape& s, float scale = 1.0F) {
  return {
      s, random_tensor({s.batch * s.length, (s.n_heads + 2 * s.n_kv_heads) * s.head_dim}, 1, scale),
      random_tensor({s.batch * s.length, s.n_heads * s.head_dim}, 2)};
}

Inputs as(at::ScalarType type, const Inputs& in) {
  return {in.shape, in.qkv.to(type), in.dout.to(type)};
}

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kBFloat16};

Results run(const Policy& policy, const Inputs& in) {
  apply_policy(policy);
  const auto& s = in.shape;
  Results r{at::full_like(in.dout, NAN), at::full({s.batch, s.n_heads, s.length}, NAN),
            at::full_like(in.qkv, NAN)};
  ops::attention(policy, s, in.qkv, r.out, r.lse);
  ops::attention_backward(policy, s, in.dout, in.qkv, r.out, r.lse, r.dqkv);
  return r;
}

// Views of the three parts as (batch, heads, length, head_dim), key and value heads repeated for
// their groups.
std::array<at::Tensor, 3> split(const at::Tensor& qkv, const AttentionShape& s) {
  const auto parts = qkv.view({s.batch, s.length, s.n_heads + 2 * s.n_kv_heads, s.head_dim})
                         .split_with_sizes({s.n_heads, s.n_kv_heads, s.n_kv_heads}, 2);
  const auto group = s.n_heads / s.n_kv_heads;
  return {parts[0].transpose(1, 2), parts[1].transpose(1, 2).repeat_interleave(group, 1),
          parts[2].transpose(1, 2).repeat_interleave(group, 1)};
}

/// By LibTorch's softmax and autograd.
Results in_double(const Inputs& in) {
  const auto& s = in.shape;
  const auto exact_qkv = in.qkv.to(at::kDouble).set_requires_grad(true);
  const auto [q, k, v] = split(exact_qkv, s);
  const auto scores = q.matmul(k.transpose(2, 3)) / std::sqrt(static_cast<double>(s.head_dim));
  const auto ones = at::ones({s.length, s.length}, at::kBool);
  auto hidden = ones.triu(1) | ones.tril(-(s.window > 0 ? s.window : s.length));
  if (s.document_starts.defined())
    hidden = hidden | (at::arange(s.length) < s.document_starts.view({s.batch, 1, s.length, 1}));
  const auto masked = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  const auto out = masked.softmax(-1).matmul(v).transpose(1, 2).reshape({s.batch * s.length, -1});
  out.backward(in.dout.to(at::kDouble));
  return {out.detach(), masked.logsumexp(-1).detach(), exact_qkv.grad()};
}

// Scalar transcription of the definition in attention.h: one (sequence, query head) at a time.
struct Definition {
  explicit Definition(const Inputs& inputs)
      : type(inputs.qkv.scalar_type()),
        in(as(at::kFloat, inputs)),
        s(inputs.shape),
        r{at::zeros_like(in.dout), at::zeros({s.batch, s.n_heads, s.length}),
          at::zeros_like(in.qkv)} {}

  void run() {
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < s.n_heads; ++h) head(b, h);
    }
    if (s.is_sliding() || s.document_starts.defined())
      r.dqkv.narrow(1, s.n_heads * s.head_dim, 2 * s.n_kv_heads * s.head_dim).add_(0.0);
    if (type == at::kFloat) return;
    r.dqkv.narrow(1, 0, (s.n_heads + s.n_kv_heads) * s.head_dim).mul_(scale());
    r.dqkv = r.dqkv.to(type);
    r.out = r.out.to(type);
  }

  /// The first key that query i of sequence b sees.
  [[nodiscard]] std::int64_t first_key(std::int64_t b, std::int64_t i) const {
    const auto first = s.window > 0 ? std::max<std::int64_t>(i - s.window + 1, 0) : 0;
    if (!s.document_starts.defined()) return first;
    const std::int64_t start = s.document_starts[b * s.length + i].item<std::int32_t>();
    return std::max(first, start);
  }

  [[nodiscard]] float scale() const { return 1.0F / std::sqrt(static_cast<float>(s.head_dim)); }

  /// x as a tensor of the inputs' type holds it.
  [[nodiscard]] float held(float x) const {
    return type == at::kFloat ? x : static_cast<float>(c10::BFloat16(x));
  }

  static float one(ref::Unary function, float x) {
    return ref::apply(function, at::full({1}, x)).item<float>();
  }

  static float dot(const float* x, const float* y, std::int64_t n) {
    float sum = 0;
    for (std::int64_t e = 0; e < n; ++e) sum = std::fmaf(x[e], y[e], sum);
    return sum;
  }

  void head(std::int64_t b, std::int64_t h) {
    const auto d = s.head_dim, group = s.n_heads / s.n_kv_heads, kv = h / group;
    const auto stride = (s.n_heads + 2 * s.n_kv_heads) * d, out_stride = s.n_heads * d;
    const auto k_at = (s.n_heads + kv) * d, v_at = (s.n_heads + s.n_kv_heads + kv) * d;
    const float* rows = in.qkv.const_data_ptr<float>() + b * s.length * stride;
    float* drows = r.dqkv.mutable_data_ptr<float>() + b * s.length * stride;
    for (std::int64_t i = 0; i < s.length; ++i) {
      const float* q = rows + i * stride + h * d;
      const float* dout = in.dout.const_data_ptr<float>() + (b * s.length + i) * out_stride + h * d;
      float* out = r.out.mutable_data_ptr<float>() + (b * s.length + i) * out_stride + h * d;
      const auto first = first_key(b, i);
      auto score = at::full({i + 1}, -INFINITY);
      float* x = score.mutable_data_ptr<float>();
      for (std::int64_t j = first; j <= i; ++j)
        x[j] = scale() * dot(q, rows + j * stride + k_at, d);
      const float top = *std::max_element(x, x + i + 1);
      const auto p = ref::apply(ops::exp, score - top);
      const float sum = ref::row_sum(p.const_data_ptr<float>(), i + 1);
      for (std::int64_t e = 0; e < d; ++e) {
        float value = 0;
        for (std::int64_t j = first; j <= i; ++j) {
          value = std::fmaf(held(p.const_data_ptr<float>()[j]), rows[j * stride + v_at + e], value);
        }
        out[e] = held(value / sum);
      }
      const float lse = top + one(ops::log, sum);
      r.lse.mutable_data_ptr<float>()[(b * s.n_heads + h) * s.length + i] = lse;
      const float delta =
          ref::row_fold(d, [&](float lane, std::int64_t e) { return lane + dout[e] * out[e]; });
      const auto again = ref::apply(ops::exp, score - lse);
      for (std::int64_t j = first; j <= i; ++j) {
        const float weight = again.const_data_ptr<float>()[j];
        const float dscore = weight * (dot(dout, rows + j * stride + v_at, d) - delta);
        const float ds = type == at::kFloat ? dscore * scale() : held(dscore);
        for (std::int64_t e = 0; e < d; ++e) {
          float& dq = drows[i * stride + h * d + e];
          float& dk = drows[j * stride + k_at + e];
          float& dv = drows[j * stride + v_at + e];
          dq = std::fmaf(ds, rows[j * stride + k_at + e], dq);
          dk = std::fmaf(ds, q[e], dk);
          dv = std::fmaf(held(weight), dout[e], dv);
        }
      }
    }
  }

  at::ScalarType type;
  Inputs in;
  AttentionShape s;
  Results r;
};

/// `shape` over documents of these lengths, which fill its sequences in their order.
AttentionShape within_documents(AttentionShape shape, const std::vector<std::int64_t>& lengths) {
  shape.document_starts = ref::document_starts(lengths, shape.length);
  return shape;
}

}  // namespace

TEST_CASE("attention agrees with LibTorch's in double", "[ops]") {
  for (const AttentionShape& s :
       {AttentionShape{2, 130, 3, 3, 16}, AttentionShape{1, 67, 4, 2, 24},
        AttentionShape{2, 64, 6, 1, 64}, AttentionShape{1, 1, 2, 2, 5},
        AttentionShape{1, 300, 2, 2, 40}, AttentionShape{2, 130, 4, 2, 16, 1},
        AttentionShape{1, 300, 2, 1, 24, 70}, AttentionShape{1, 300, 2, 2, 40, 299},
        within_documents({2, 130, 4, 2, 16}, {1, 64, 65, 70, 2, 58}),
        within_documents({1, 300, 2, 1, 24, 70}, {90, 10, 200})}) {
    const auto in = inputs_for(s);
    const auto exact = in_double(in);
    const auto r = run(resolve_policy("portable", "auto", 2), in);
    INFO("length " << s.length << ", head_dim " << s.head_dim << ", window " << s.window);
    CHECK(at::allclose(r.out.to(at::kDouble), exact.out, 1e-5, 2e-6));
    CHECK(at::allclose(r.lse.to(at::kDouble), exact.lse, 1e-6, 2e-6));
    CHECK(at::allclose(r.dqkv.to(at::kDouble), exact.dqkv, 1e-4, 1e-5));
  }
}

namespace {

void check_definition(const Inputs& in) {
  Definition definition(in);
  definition.run();
  ref::for_each_policy([&](const Policy& policy) {
    const auto r = run(policy, in);
    INFO(to_string(policy.isa) << ", " << policy.threads << " threads, length " << in.shape.length
                               << ", window " << in.shape.window << ", heads " << in.shape.n_heads
                               << " of " << in.shape.head_dim << ", "
                               << at::toString(in.qkv.scalar_type()));
    CHECK(ref::same_bits(r.out, definition.r.out));
    CHECK(ref::same_bits(r.lse, definition.r.lse));
    CHECK(ref::same_bits(r.dqkv, definition.r.dqkv));
  });
}

}  // namespace

TEST_CASE("attention is its scalar definition bit for bit", "[ops]") {
  for (const AttentionShape& s : {AttentionShape{1, 1, 1, 1, 1}, AttentionShape{1, 63, 2, 1, 7},
                                  AttentionShape{2, 65, 4, 2, 32}, AttentionShape{1, 197, 1, 1, 33},
                                  AttentionShape{1, 128, 3, 3, 16}, AttentionShape{2, 64, 2, 2, 8},
                                  AttentionShape{1, 200, 2, 1, 20}, AttentionShape{0, 5, 1, 1, 8},
                                  AttentionShape{3, 0, 1, 1, 8}}) {
    for (const auto type : kTypes) check_definition(as(type, inputs_for(s, 2.0F)));
  }
}

TEST_CASE("sliding attention is its scalar definition bit for bit", "[ops]") {
  for (const std::int64_t window : {1, 2, 15, 63, 64, 65, 100, 198, 199, 200, 500}) {
    const AttentionShape s{1, 200, 2, 1, 20, window};
    for (const auto type : kTypes) check_definition(as(type, inputs_for(s, 2.0F)));
  }
  check_definition(inputs_for({2, 300, 2, 2, 8, 130}, 30.0F));
}

TEST_CASE("attention within documents is its scalar definition bit for bit", "[ops]") {
  const std::vector<std::vector<std::int64_t>> documents = {
      {200}, {1, 199}, {199, 1}, {64, 136}, {63, 1, 1, 64, 71}, {70, 60, 70}, {5, 6, 7, 100, 82}};
  for (const auto& lengths : documents) {
    const auto s = within_documents({1, 200, 2, 1, 20}, lengths);
    for (const auto type : kTypes) check_definition(as(type, inputs_for(s, 2.0F)));
  }
  const std::vector<std::int64_t> single(200, 1);
  check_definition(inputs_for(within_documents({1, 200, 2, 2, 8}, single), 2.0F));
  check_definition(inputs_for(within_documents({2, 130, 4, 2, 8}, {130, 65, 65}), 30.0F));
  check_definition(inputs_for(within_documents({2, 150, 2, 1, 8, 40}, {100, 50, 20, 130}), 30.0F));
}

TEST_CASE("what hides no key changes no bit of attention", "[ops]") {
  const auto policy = resolve_policy("portable", "auto", 2);
  const AttentionShape all{2, 70, 4, 2, 16};
  const auto expected = run(policy, inputs_for(all));
  for (const auto& s :
       {AttentionShape{2, 70, 4, 2, 16, 70}, within_documents(all, {all.length, all.length})}) {
    const auto found = run(policy, inputs_for(s));
    CHECK(ref::same_bits(found.out, expected.out));
    CHECK(ref::same_bits(found.lse, expected.lse));
    CHECK(ref::same_bits(found.dqkv, expected.dqkv));
  }
}

TEST_CASE("attention within documents is that of each document to rounding", "[ops]") {
  const auto policy = resolve_policy("portable", "auto", 2);
  const std::vector<std::int64_t> lengths = {37, 64, 1, 98};
  const auto in = inputs_for(within_documents({1, 200, 4, 2, 16}, lengths));
  const auto whole = run(policy, in);
  std::int64_t begin = 0;
  for (const auto length : lengths) {
    const AttentionShape alone{1, length, 4, 2, 16};
    const auto rows = [&](const at::Tensor& t) { return t.narrow(0, begin, length); };
    const auto one = run(policy, {alone, rows(in.qkv), rows(in.dout)});
    CHECK(at::allclose(rows(whole.out), one.out, 1e-5, 1e-6));
    CHECK(at::allclose(rows(whole.dqkv), one.dqkv, 1e-4, 1e-5));
    begin += length;
  }
}

TEST_CASE("fast attention keeps to documents, in every bit as the portable one", "[ops]") {
  const auto in = inputs_for(within_documents({2, 130, 4, 2, 16}, {100, 30, 1, 129}));
  const auto expected = run(resolve_policy("portable", "auto", 2), in);
  const auto found = run(resolve_policy("fast", "auto", 2), in);
  CHECK(ref::same_bits(found.out, expected.out));
  CHECK(ref::same_bits(found.dqkv, expected.dqkv));
}

TEST_CASE("attention refuses document starts of another size or type", "[ops]") {
  const auto policy = resolve_policy("portable", "auto", 1);
  auto in = inputs_for({1, 8, 1, 1, 8});
  for (const auto& starts : {at::zeros({7}, at::kInt), at::zeros({8}, at::kLong)}) {
    in.shape.document_starts = starts;
    CHECK_THROWS_AS(run(policy, in), Error);
  }
}

TEST_CASE("attention with large scores and subnormal values keeps the definition's bits", "[ops]") {
  auto in = inputs_for({1, 70, 2, 2, 16}, 30.0F);
  for (std::int64_t i = 0; i < in.qkv.numel(); i += 5)
    in.qkv.mutable_data_ptr<float>()[i] = i % 2 == 0 ? -0.0F : 1e-40F;
  for (const auto type : kTypes) check_definition(as(type, in));
}

TEST_CASE("a key that is not a number reaches only the queries at and after it", "[ops]") {
  const AttentionShape s{1, 150, 2, 2, 16};
  auto in = inputs_for(s);
  in.qkv.select(0, 77).narrow(0, 4 * 16, 16).fill_(NAN);  // the first head's value
  ref::for_each_policy([&](const Policy& policy) {
    for (const auto type : kTypes) {
      const auto nan = run(policy, as(type, in)).out.isnan();
      CHECK(!nan.narrow(0, 0, 77).any().item<bool>());
      CHECK(nan.narrow(0, 77, 73).narrow(1, 0, 16).all().item<bool>());
      CHECK(!nan.narrow(1, 16, 16).any().item<bool>());
    }
  });
}

TEST_CASE("an infinite gradient reaches only the keys at and before it", "[ops]") {
  const AttentionShape s{1, 150, 2, 2, 16};
  auto in = inputs_for(s);
  in.dout.select(0, 77).narrow(0, 0, 16).fill_(INFINITY);  // the first head's
  ref::for_each_policy([&](const Policy& policy) {
    for (const auto type : kTypes) {
      const auto finite = run(policy, as(type, in)).dqkv.isfinite();
      CHECK(finite.narrow(0, 78, 72).all().item<bool>());
      CHECK(finite.narrow(1, 16, 16).all().item<bool>());  // the second head's query
      CHECK(!finite.select(0, 77).narrow(0, 0, 16).any().item<bool>());
      CHECK(!finite.narrow(0, 0, 78).narrow(1, 4 * 16, 16).any().item<bool>());  // values
    }
  });
}

TEST_CASE("a sequence has the same attention alone, in a batch and as a prefix", "[ops]") {
  const AttentionShape s{3, 140, 4, 2, 24};
  const auto policy = resolve_policy("portable", "auto", 2);
  for (const auto type : kTypes) {
    const auto in = as(type, inputs_for(s));
    const auto all = run(policy, in);
    const AttentionShape single{1, 140, 4, 2, 24};
    const auto alone = run(policy, {single, in.qkv.narrow(0, 140, 140).contiguous(),
                                    in.dout.narrow(0, 140, 140).contiguous()});
    CHECK(ref::same_bits(alone.out, all.out.narrow(0, 140, 140)));
    CHECK(ref::same_bits(alone.dqkv, all.dqkv.narrow(0, 140, 140)));
    const AttentionShape prefix{1, 71, 4, 2, 24};
    const auto start = run(policy, {prefix, in.qkv.narrow(0, 140, 71).contiguous(),
                                    in.dout.narrow(0, 140, 71).contiguous()});
    CHECK(ref::same_bits(start.out, all.out.narrow(0, 140, 71)));
  }
}

TEST_CASE("attention in bf16 is the reference's, with no more error than LibTorch's", "[ops]") {
  const ref::Bf16Golden golden;
  for (const std::int64_t head_dim : {16, 20}) {
    const std::string name = "attention" + std::to_string(head_dim);
    const AttentionShape s{2, 80, 3, 3, head_dim};
    const auto rows = [&](const char* part) { return golden.rows_of_heads(name + part); };
    const Inputs in{s, at::cat({rows(".q"), rows(".k"), rows(".v")}, 1), rows(".do")};
    const auto r = run(resolve_policy("portable", "auto", 1), in);
    const auto exact = in_double(in);
    const auto check = [&](const std::string& output, const at::Tensor& found,
                           const at::Tensor& exactly) {
      golden.check(name + output, found, golden.out_rows_of_heads(name + output));
      golden.check_error(name + output, found, exactly);
    };
    check(".o", r.out, exact.out);
    int part = 0;
    for (const std::string output : {".d_q", ".d_k", ".d_v"}) {
      const auto columns = 3 * head_dim;
      check(output, r.dqkv.narrow(1, part * columns, columns),
            exact.dqkv.narrow(1, part * columns, columns));
      ++part;
    }
  }
}

// OLMo repeats keys and values for their query heads, so that torch rounds the gradient of each of
// these before it adds them in fp32 and rounds the sum.
TEST_CASE("a shared head's gradient in bf16, rounded once, is nearer to the exact one than OLMo's",
          "[ops]") {
  const AttentionShape s{2, 80, 8, 2, 16}, repeated{2, 80, 8, 8, 16};
  const auto policy = resolve_policy("portable", "auto", 1);
  const Inputs in = as(at::kBFloat16, inputs_for(s));
  const auto rows = [&](const at::Tensor& heads) {
    return heads.transpose(1, 2).reshape({s.batch * s.length, -1});
  };
  const auto [q, k, v] = split(in.qkv, s);
  const Inputs each{repeated, at::cat({rows(q), rows(k), rows(v)}, 1), in.dout};
  const auto [unused, dk, dv] = split(run(policy, each).dqkv, repeated);
  const auto added = [&](const at::Tensor& heads) {
    return rows(heads.to(at::kFloat)
                    .reshape({s.batch, s.n_kv_heads, -1, s.length, s.head_dim})
                    .sum(2)
                    .to(at::kBFloat16));
  };
  const auto shared = [&](const at::Tensor& dqkv, std::int64_t part) {
    const auto columns = s.n_kv_heads * s.head_dim;
    return dqkv.narrow(1, s.n_heads * s.head_dim + part * columns, columns).to(at::kDouble);
  };
  const auto ours = run(policy, in).dqkv, exact = in_double(in).dqkv;
  for (const std::int64_t part : {0, 1}) {
    const at::Tensor wanted = shared(exact, part);
    const auto error = [&](const at::Tensor& found) {
      return ((found.to(at::kDouble) - wanted).norm() / wanted.norm()).item<double>();
    };
    const double of_ours = error(shared(ours, part)), of_olmo = error(added(part == 0 ? dk : dv));
    INFO((part == 0 ? "dk: " : "dv: ") << of_ours << " against " << of_olmo);
    CHECK(of_ours < of_olmo);
  }
}

TEST_CASE("attention refuses head counts and shapes that do not fit", "[ops]") {
  const auto policy = resolve_policy("portable", "auto", 1);
  auto in = inputs_for({1, 4, 3, 1, 8});
  auto out = at::zeros_like(in.dout), lse = at::zeros({1, 3, 4});
  CHECK_NOTHROW(ops::attention(policy, in.shape, in.qkv, out, lse));
  CHECK_THROWS_AS(ops::attention(policy, {1, 4, 3, 2, 8}, in.qkv, out, lse), Error);
  CHECK_THROWS_AS(ops::attention(policy, {1, 5, 3, 1, 8}, in.qkv, out, lse), Error);
  CHECK_THROWS_AS(ops::attention(policy, {1, 4, 3, 0, 8}, in.qkv, out, lse), Error);
  CHECK_THROWS_AS(ops::attention(policy, in.shape, ref::narrowed(in.qkv), out, lse), Error);
}
