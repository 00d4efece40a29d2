#include <ATen/ATen.h>

#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/gpu/emulated.h"
#include "ops/linear.h"

namespace olmo::ops::emulated {
namespace {

using reference::integers;

/// Every product and combination of types that an operation takes, of an m x k and an n x k matrix.
void check_products(std::int64_t m, std::int64_t n, std::int64_t k, bool odd = false) {
  INFO(m << " x " << n << " x " << k);
  check("products", [&](const Policy& policy) {
    const auto draw = odd ? nasty : values;
    Tensors out;
    for (const auto left : {at::kFloat, at::kBFloat16}) {
      for (const auto right : {at::kFloat, at::kBFloat16}) {
        const bool narrow = left == at::kBFloat16 && right == at::kBFloat16;
        const at::Tensor x = draw(policy, {m, k}, 1, 1).to(left),
                         w = draw(policy, {n, k}, 2, 1).to(right);
        const at::Tensor dy = draw(policy, {m, n}, 3, 1).to(left), xr = x.to(right);
        for (const auto type : {at::kFloat, at::kBFloat16}) {
          if (type == at::kBFloat16 && !narrow) continue;
          at::Tensor y = empty(policy, {m, n}, type), dx = empty(policy, {m, k}, type);
          linear(policy, x, w, y);
          linear_backward_input(policy, dy, w, dx);
          out.insert(out.end(), {y, dx});
        }
        at::Tensor dw = values(policy, {n, k}, 4), fresh = empty(policy, {n, k}),
                   rounded = values(policy, {n, k}, 4);
        linear_backward_weight(policy, dy, xr, dw, true);
        linear_backward_weight(policy, dy, xr, fresh, false);
        linear_backward_weight(policy, dy, xr, rounded, true, Rounding::kBf16);
        out.insert(out.end(), {dw, fresh, rounded});
      }
    }
    return out;
  });
}

TEST_CASE("matrix products on a GPU have the CPU's bits", "[ops][gpu][gpu-device]") {
  check_products(1, 1, 1);
  check_products(3, 5, 0);
  check_products(0, 4, 3);
  check_products(65, 64, 16);
  check_products(64, 130, 33);
  check_products(12, 68, 20);
  check_products(70, 20, 100, true);
}

TEST_CASE("matrix products of rows that are not aligned have the CPU's bits on a GPU",
          "[ops][gpu][gpu-device]") {
  check("a view from its second element on", [](const Policy& policy) {
    Tensors out;
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const auto shifted = [&](std::int64_t rows, std::uint64_t seed) {
        return values(policy, {rows * 8 + 1}, seed).to(type).narrow(0, 1, rows * 8).view({rows, 8});
      };
      at::Tensor y = shifted(20, 3).view({20, 8});
      linear(policy, shifted(20, 1), shifted(8, 2), y);
      out.push_back(y);
    }
    return out;
  });
}

TEST_CASE("matrix products in large tiles on a GPU have the CPU's bits", "[ops][gpu][gpu-device]") {
  constexpr std::int64_t kLong = 264 * 128 - 5;
  check("products in tiles of 128", [](const Policy& policy) {
    const at::Tensor x = values(policy, {kLong, 19}, 1), w = values(policy, {100, 19}, 2);
    at::Tensor y = empty(policy, {kLong, 100}), mixed = empty(policy, {kLong, 100});
    at::Tensor narrow = empty(policy, {kLong, 100}, at::kBFloat16);
    linear(policy, x, w, y);
    linear(policy, x, w.to(at::kBFloat16), mixed);
    linear(policy, x.to(at::kBFloat16), w.to(at::kBFloat16), narrow);
    return Tensors{y, mixed, narrow};
  });
}

TEST_CASE("a sum of -0 stays -0 on a GPU", "[ops][gpu][gpu-device]") {
  check("-0", [](const Policy& policy) {
    const at::Tensor dy = full(policy, {3, 4}, -1e-30F), x = full(policy, {3, 5}, 1e-30F);
    at::Tensor dw = full(policy, {4, 5}, -0.0F);
    linear_backward_weight(policy, dy, x, dw, true);
    return Tensors{dw};
  });
}

void check_attention(const AttentionShape& shape, float scale) {
  AttentionShape s = shape;
  const auto width = (s.n_heads + 2 * s.n_kv_heads) * s.head_dim;
  INFO("length " << s.length << ", head_dim " << s.head_dim << ", window " << s.window);
  check("attention", [&](const Policy& policy) {
    if (shape.document_starts.defined())
      s.document_starts = to_device(policy, shape.document_starts);
    const auto rows = s.batch * s.length;
    Tensors all;
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor qkv = values(policy, {rows, width}, 1, scale).to(type);
      const at::Tensor dout = values(policy, {rows, s.n_heads * s.head_dim}, 2).to(type);
      at::Tensor out = at::full_like(dout, NAN), dqkv = at::full_like(qkv, NAN);
      at::Tensor lse = full(policy, {s.batch, s.n_heads, s.length}, NAN);
      attention(policy, s, qkv, out, lse);
      attention_backward(policy, s, dout, qkv, out, lse, dqkv);
      all.insert(all.end(), {out, lse, dqkv});
    }
    return all;
  });
}

TEST_CASE("attention on a GPU has the CPU's bits", "[ops][gpu][gpu-device]") {
  check_attention({1, 1, 1, 1, 8}, 1);
  check_attention({2, 63, 2, 1, 16}, 3);
  check_attention({1, 64, 2, 2, 40}, 1);
  check_attention({1, 65, 4, 2, 64}, 20);
  check_attention({1, 150, 2, 1, 128}, 2);
  check_attention({1, 70, 1, 1, 136}, 2);
  check_attention({1, 66, 2, 2, 30}, 2);  // four elements of a row are not aligned
  check_attention({1, 97, 3, 1, 98}, 2);
  check_attention({1, 64, 1, 1, 160}, 2);
}

TEST_CASE("sliding attention on a GPU has the CPU's bits", "[ops][gpu][gpu-device]") {
  for (const std::int64_t window : {1, 2, 63, 64, 65, 100, 199})
    check_attention({1, 200, 2, 1, 16, window}, 2);
  check_attention({2, 150, 2, 2, 30, 70}, 20);
}

TEST_CASE("attention within documents on a GPU has the CPU's bits", "[ops][gpu][gpu-device]") {
  const auto check_documents = [](AttentionShape s, const std::vector<std::int64_t>& lengths,
                                  float scale) {
    s.document_starts = reference::document_starts(lengths, s.length);
    check_attention(s, scale);
  };
  check_documents({1, 200, 2, 1, 16}, {200}, 2);
  check_documents({1, 200, 2, 1, 16}, {63, 1, 1, 64, 71}, 2);
  check_documents({1, 200, 2, 1, 16}, {70, 60, 70}, 2);
  check_documents({2, 150, 4, 2, 30}, {128, 22, 3, 147}, 20);
  check_documents({2, 150, 2, 2, 30, 40}, {100, 50, 20, 130}, 20);
  check_documents({1, 130, 1, 1, 16}, std::vector<std::int64_t>(130, 1), 2);
}

TEST_CASE("attention on a GPU lets infinities and NaN pass as the CPU does",
          "[ops][gpu][gpu-device]") {
  check("attention of odd values", [](const Policy& policy) {
    const AttentionShape s{1, 70, 2, 1, 16};
    const at::Tensor on_host = reference::values({70, 64}, 1);
    auto* data = on_host.data_ptr<float>();
    data[40 * 64 + 35] = INFINITY;   // a key
    data[66 * 64 + 50] = -INFINITY;  // a value
    data[67 * 64 + 3] = NAN;         // a query
    const at::Tensor qkv = to_device(policy, on_host);
    const at::Tensor dout = values(policy, {70, 32}, 2);
    at::Tensor out = empty(policy, {70, 32}), dqkv = empty(policy, {70, 64}),
               lse = empty(policy, {1, 2, 70});
    attention(policy, s, qkv, out, lse);
    attention_backward(policy, s, dout, qkv, out, lse, dqkv);
    return Tensors{out, lse, dqkv};
  });
}

void check_head(std::int64_t vocabulary, float scale, std::int64_t chunk,
                at::ScalarType type = at::kFloat) {
  INFO("vocabulary " << vocabulary);
  check("head", [&](const Policy& policy) {
    constexpr std::int64_t kTokens = 37, kWidth = 24;
    HeadWorkspace workspace;
    workspace.chunk = chunk;
    const at::Tensor labels = integers(kTokens, vocabulary, 3);
    labels.data_ptr<std::int64_t>()[5] = kIgnoredLabel;
    const HeadInput input{values(policy, {kTokens, kWidth}, 1, scale).to(type),
                          values(policy, {vocabulary, kWidth}, 2).to(type), labels};
    const HeadTokenValues tokens{empty(policy, {kTokens}), empty(policy, {kTokens}),
                                 empty(policy, {kTokens}, at::kLong)};
    const HeadGradients gradients{
        .grad_scale = 0.01F,
        .z_multiplier = 1e-4F,
        .dh_MD = empty(policy, {kTokens, kWidth}, type),
        .dw_VD = values(policy, {vocabulary, kWidth}, 4),
        .rounding = type == at::kFloat ? Rounding::kNone : Rounding::kBf16};
    const HeadLoss loss = head_loss(policy, workspace, input, tokens);
    const HeadLoss same =
        sum_of(policy, head_loss_backward(policy, workspace, input, gradients, tokens));
    CHECK(loss.ce_sum == same.ce_sum);
    std::vector<TokenTarget> targets;
    for (std::int64_t i = 0; i < kTokens; ++i) targets.push_back({i, i % vocabulary});
    std::vector<TokenScore> scores(targets.size());
    head_scores(policy, workspace, input.h_MD, input.w_VD, targets, scores);
    const at::Tensor said = at::empty({kTokens, 3});
    for (std::int64_t i = 0; i < kTokens; ++i) {
      const TokenScore& score = scores[static_cast<std::size_t>(i)];
      const float parts[] = {score.log_prob, score.logit, score.is_likeliest ? 1.0F : 0.0F};
      std::ranges::copy(parts, said[i].data_ptr<float>());
    }
    return Tensors{at::tensor(std::vector<float>{static_cast<float>(loss.ce_sum),
                                                 static_cast<float>(loss.z_sum)}),
                   tokens.ce_M,
                   tokens.lse_M,
                   tokens.argmax_M,
                   gradients.dh_MD,
                   gradients.dw_VD,
                   said};
  });
}

TEST_CASE("the head and its loss on a GPU have the CPU's bits", "[ops][gpu][gpu-device]") {
  check_head(1, 1, 0);
  check_head(70, 5, 16);
  check_head(500, 20, 0);
  check_head(70, 5, 16, at::kBFloat16);
  // Of more columns than a thread has on their way at once, with a rest; and rows that do not lie
  // so that four fit.
  for (const std::int64_t vocabulary : {516, 558}) {
    check_head(vocabulary, 20, 16);
    check_head(vocabulary, 5, 16, at::kBFloat16);
  }
}

}  // namespace
}  // namespace olmo::ops::emulated
