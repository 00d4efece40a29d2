#include "ops/attention.h"

#include <cmath>
#include <limits>
#include <random>

#include "core/error.h"
#include "support/catch.h"

using namespace olmo;
using ops::AttentionShape;

namespace {

std::vector<Policy> policies() {
  std::vector<Policy> all;
  for (const auto* isa : {"plain", "avx2", "avx512"}) {
    for (const int threads : {1, 2, 3}) {
      try {
        all.push_back(resolve_policy("portable", isa, threads));
      } catch (const Error&) {  // this machine lacks it
      }
    }
  }
  return all;
}

std::string text(const Policy& p) {
  return to_string(p.isa) + ", " + std::to_string(p.threads) + " threads";
}

at::Tensor random_tensor(at::IntArrayRef sizes, unsigned seed, float scale = 1.0F) {
  auto t = at::empty(sizes, at::kFloat);
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < t.numel(); ++i)
    t.mutable_data_ptr<float>()[i] = scale * normal(bits);
  return t;
}

bool same(const at::Tensor& x, const at::Tensor& y) {
  const float* a = x.const_data_ptr<float>();
  const float* b = y.const_data_ptr<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(a + i, b + i, sizeof(float)) != 0) return false;
  }
  return true;
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

}  // namespace

TEST_CASE("attention agrees with LibTorch's in double", "[ops]") {
  for (const AttentionShape& s : {AttentionShape{2, 130, 3, 3, 16}, AttentionShape{1, 67, 4, 2, 24},
                                  AttentionShape{2, 64, 6, 1, 64}, AttentionShape{1, 1, 2, 2, 5},
                                  AttentionShape{1, 300, 2, 2, 40}}) {
    const auto in = inputs_for(s);
    const auto exact_qkv = in.qkv.to(at::kDouble).set_requires_grad(true);
    const auto [q, k, v] = split(exact_qkv, s);
    const auto scores = q.matmul(k.transpose(2, 3)) / std::sqrt(static_cast<double>(s.head_dim));
    const auto hidden = at::ones({s.length, s.length}, at::kBool).triu(1);
    const auto masked = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
    const auto out = masked.softmax(-1).matmul(v).transpose(1, 2).reshape({s.batch * s.length, -1});
    out.backward(in.dout.to(at::kDouble));
    const auto r = run(resolve_policy("portable", "auto", 2), in);
    INFO("length " << s.length << ", head_dim " << s.head_dim);
    CHECK(at::allclose(r.out.to(at::kDouble), out, 1e-5, 2e-6));
    CHECK(at::allclose(r.lse.to(at::kDouble), masked.logsumexp(-1), 1e-6, 2e-6));
    CHECK(at::allclose(r.dqkv.to(at::kDouble), exact_qkv.grad(), 1e-4, 1e-5));
  }
}

TEST_CASE("attention has the same bits on every instruction set and thread count", "[ops]") {
  for (const AttentionShape& s : {AttentionShape{1, 1, 1, 1, 1}, AttentionShape{1, 63, 2, 1, 7},
                                  AttentionShape{2, 65, 4, 2, 32}, AttentionShape{1, 197, 1, 1, 33},
                                  AttentionShape{1, 128, 3, 3, 16}, AttentionShape{0, 5, 1, 1, 8},
                                  AttentionShape{3, 0, 1, 1, 8}}) {
    const auto in = inputs_for(s, 2.0F);
    const auto first = run(policies().front(), in);
    CHECK(!first.dqkv.isnan().any().item<bool>());
    for (const auto& policy : policies()) {
      const auto r = run(policy, in);
      INFO(text(policy) << ", length " << s.length << ", heads " << s.n_heads);
      CHECK(same(r.out, first.out));
      CHECK(same(r.lse, first.lse));
      CHECK(same(r.dqkv, first.dqkv));
    }
  }
}
