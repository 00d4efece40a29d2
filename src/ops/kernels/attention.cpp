#include "ops/kernels/attention.h"

#include <cmath>
#include <cstdlib>

#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {
namespace {

struct Rows {
  std::int64_t stride;
  std::int64_t q, k, v;
};

Rows columns(const AttentionProblem& a, std::int64_t kv) {
  const auto d = a.head_dim;
  return {(a.n_heads + 2 * a.n_kv_heads) * d, 0, (a.n_heads + kv) * d,
          (a.n_heads + a.n_kv_heads + kv) * d};
}

float dot(const float* x, const float* y, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum = __builtin_fmaf(x[i], y[i], sum);
  return sum;
}

float row_sum(const float* x, std::int64_t n) {
  F32x16 lanes = zero();
  for (std::int64_t i = 0; i < n; i += 16) lanes = lanes + load_n(x + i, n - i < 16 ? n - i : 16);
  return tree_sum(lanes);
}

// Units are (batch, kv head) pairs.
void forward(const AttentionProblem& a, std::int64_t begin, std::int64_t end) {
  const auto d = a.head_dim;
  const auto group = a.n_heads / a.n_kv_heads;
  float* p =
      static_cast<float*>(std::malloc(static_cast<std::size_t>(a.length + 16) * sizeof(float)));
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const auto b = unit / a.n_kv_heads, kv = unit % a.n_kv_heads;
    const Rows at = columns(a, kv);
    const float* rows = a.qkv + b * a.length * at.stride;
    for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
      for (std::int64_t i = 0; i < a.length; ++i) {
        float top = -INFINITY;
        for (std::int64_t j = 0; j <= i; ++j) {
          p[j] = a.scale * dot(rows + i * at.stride + h * d, rows + j * at.stride + at.k, d);
          top = p[j] > top ? p[j] : top;
        }
        for (std::int64_t j = 0; j <= i; ++j) p[j] = std::exp(p[j] - top);
        const float sum = row_sum(p, i + 1);
        float* out = a.out + (b * a.length + i) * a.n_heads * d + h * d;
        for (std::int64_t e = 0; e < d; ++e) {
          float value = 0;
          for (std::int64_t j = 0; j <= i; ++j) {
            value = __builtin_fmaf(p[j], rows[j * at.stride + at.v + e], value);
          }
          out[e] = value / sum;
        }
        a.lse[(b * a.n_heads + h) * a.length + i] = top + std::log(sum);
      }
    }
  }
  std::free(p);
}

void backward(const AttentionProblem& a, std::int64_t begin, std::int64_t end) {
  const auto d = a.head_dim;
  const auto group = a.n_heads / a.n_kv_heads;
  float* products =
      static_cast<float*>(std::malloc(static_cast<std::size_t>(d + 16) * sizeof(float)));
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const auto b = unit / a.n_kv_heads, kv = unit % a.n_kv_heads;
    const Rows at = columns(a, kv);
    const float* rows = a.qkv + b * a.length * at.stride;
    float* drows = a.dqkv + b * a.length * at.stride;
    for (std::int64_t j = 0; j < a.length; ++j) {
      for (std::int64_t e = 0; e < d; ++e) {
        drows[j * at.stride + at.k + e] = 0;
        drows[j * at.stride + at.v + e] = 0;
      }
    }
    for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
      for (std::int64_t i = 0; i < a.length; ++i) {
        const float* q = rows + i * at.stride + h * d;
        float* dq = drows + i * at.stride + h * d;
        const float* out = a.out + (b * a.length + i) * a.n_heads * d + h * d;
        const float* dout = a.dout + (b * a.length + i) * a.n_heads * d + h * d;
        for (std::int64_t e = 0; e < d; ++e) products[e] = dout[e] * out[e], dq[e] = 0;
        const float delta = row_sum(products, d);
        const float lse = a.lse[(b * a.n_heads + h) * a.length + i];
        for (std::int64_t j = 0; j <= i; ++j) {
          const float* k = rows + j * at.stride + at.k;
          const float* v = rows + j * at.stride + at.v;
          const float p = std::exp(a.scale * dot(q, k, d) - lse);
          const float ds = p * (dot(dout, v, d) - delta) * a.scale;
          float* dk = drows + j * at.stride + at.k;
          float* dv = drows + j * at.stride + at.v;
          for (std::int64_t e = 0; e < d; ++e) {
            dq[e] = __builtin_fmaf(ds, k[e], dq[e]);
            dk[e] = __builtin_fmaf(ds, q[e], dk[e]);
            dv[e] = __builtin_fmaf(p, dout[e], dv[e]);
          }
        }
      }
    }
  }
  std::free(products);
}

}  // namespace

extern const AttentionKernels attention_kernels;
const AttentionKernels attention_kernels = {forward, backward};

}  // namespace olmo::ops::OLMO_ISA
