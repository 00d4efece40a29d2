#include <ATen/ATen.h>

#include "core/compute/named_tensors.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/gpu/emulated.h"
#include "ops/layer_norm.h"
#include "ops/optimizer_update.h"
#include "ops/rope.h"
#include "ops/swiglu.h"

namespace olmo::ops::emulated {
namespace {

using reference::integers;

constexpr std::int64_t kWidths[] = {1, 15, 16, 17, 64, 100};
/// Rows of which a norm loads several steps before it computes, with and without a rest.
constexpr std::int64_t kLongRows[] = {128, 387};

TEST_CASE("elementwise operations on a GPU have the CPU's bits", "[ops][gpu][gpu-device]") {
  for (const std::int64_t n : {0, 1, 17, 1000, 1025, 4099}) {
    check("elementwise " + std::to_string(n), [&](const Policy& policy) {
      const at::Tensor x = nasty(policy, {n}, 1, 100), y = nasty(policy, {n}, 2);
      Tensors out;
      for (const auto function : {exp, log, sigmoid}) {
        out.push_back(empty(policy, {n}));
        function(policy, x, out.back());
      }
      out.push_back(empty(policy, {n}));
      add(policy, x, y, out.back());
      scale(policy, y, 0.3F);
      out.push_back(y);
      const at::Tensor mask = empty(policy, {n}, at::kByte);
      clamp(policy, x, 8.0F, mask);
      const at::Tensor dx = nasty(policy, {n}, 3);
      clamp_backward(policy, mask, dx);
      out.insert(out.end(), {x, mask, dx});
      return out;
    });
  }
}

TEST_CASE("sums of tensors that four elements at a time do not fit have the CPU's bits",
          "[ops][gpu][gpu-device]") {
  check("misaligned", [&](const Policy& policy) {
    const at::Tensor a = values(policy, {1029}, 1), b = values(policy, {1029}, 2);
    const at::Tensor c = reference::narrowed(b), sum = full(policy, {1029}, 7);
    add(policy, a.narrow(0, 1, 1028), b.narrow(0, 0, 1028), sum.narrow(0, 1, 1028));
    add(policy, a.narrow(0, 0, 1028), c.narrow(0, 1, 1028), a.narrow(0, 0, 1028));
    add(policy, c.narrow(0, 0, 1028), c.narrow(0, 0, 1028), c.narrow(0, 0, 1028));
    return Tensors{sum, a, c};
  });
}

TEST_CASE("elementwise operations of bf16 on a GPU have the CPU's bits", "[ops][gpu][gpu-device]") {
  for (const std::int64_t n : {1, 17, 1025}) {
    check("elementwise in bf16 " + std::to_string(n), [&](const Policy& policy) {
      const at::Tensor x = reference::narrowed(nasty(policy, {n}, 1, 100));
      const at::Tensor y = reference::narrowed(nasty(policy, {n}, 2)), z = nasty(policy, {n}, 3);
      const at::Tensor sum = at::empty_like(x), mask = empty(policy, {n}, at::kByte);
      add(policy, x, y, sum);
      add(policy, z, y, z);
      scale(policy, y, 0.3F);
      clamp(policy, x, 8.0F, mask);
      const at::Tensor dx = reference::narrowed(nasty(policy, {n}, 4));
      clamp_backward(policy, mask, dx);
      const at::Tensor rounded = nasty(policy, {n}, 5, 10);
      round_to_bf16(policy, rounded);
      return Tensors{sum, z, y, x, mask, dx, rounded};
    });
  }
}

using Norm = void (*)(const Context&, const at::Tensor&, const NormParameters&, float,
                      const at::Tensor&, const at::Tensor&);

enum class Has { kNothing, kWeight, kWeightAndBias };

void check_norm(std::int64_t columns, bool centred, Has has, bool odd,
                at::ScalarType type = at::kFloat) {
  check("norm " + std::to_string(columns), [&](const Policy& policy) {
    constexpr std::int64_t kRows = 19;
    const auto draw = [&](at::IntArrayRef sizes, std::uint64_t seed, float scale = 1.0F) {
      return (odd ? nasty : values)(policy, sizes, seed, scale).to(type);
    };
    const at::Tensor wide = draw({kRows, columns + 5}, 1, 2);
    const at::Tensor x = wide.narrow(1, 3, columns), dy = draw({kRows, columns}, 2, 1);
    NormParameters parameters;
    NormBackward back;
    back.dy_MD = dy;
    back.x_MD = x;
    back.accumulate_dx = centred;
    if (has != Has::kNothing) {
      parameters.weight = back.weight_D = values(policy, {columns}, 3).to(type);
      back.dweight_D = values(policy, {columns}, 5);
    }
    if (has == Has::kWeightAndBias) {
      parameters.bias = values(policy, {columns}, 4).to(type);
      back.dbias_D = values(policy, {columns}, 6);
    }
    if (type == at::kBFloat16) back.rounding = Rounding::kBf16;
    const at::Tensor y = empty(policy, {kRows, columns}, type);
    back.stats = empty(policy, {kRows, centred ? 2 : 1});
    back.dx_MD = values(policy, {kRows, columns}, 7).to(type);
    (centred ? Norm(layer_norm) : Norm(rms_norm))(policy, x, parameters, 1e-5F, y, back.stats);
    (centred ? layer_norm_backward : rms_norm_backward)(policy, back);
    Tensors out{y, back.stats, back.dx_MD};
    for (const at::Tensor& gradient : {back.dweight_D, back.dbias_D})
      if (gradient.defined()) out.push_back(gradient);
    return out;
  });
}

TEST_CASE("norms on a GPU have the CPU's bits", "[ops][gpu][gpu-device]") {
  std::vector<std::int64_t> widths(std::begin(kWidths), std::end(kWidths));
  widths.insert(widths.end(), std::begin(kLongRows), std::end(kLongRows));
  for (const std::int64_t columns : widths) {
    for (const bool centred : {true, false}) {
      check_norm(columns, centred, Has::kNothing, true);
      for (const Has has : {Has::kWeight, Has::kWeightAndBias}) {
        check_norm(columns, centred, has, false);
        check_norm(columns, centred, has, false, at::kBFloat16);
      }
    }
  }
}

/// Also widths of several pieces of a row, with and without a rest.
std::vector<std::int64_t> widths_in_pieces() {
  std::vector<std::int64_t> widths(std::begin(kWidths), std::end(kWidths));
  widths.insert(widths.end(), {1024, 1028, 1030});
  return widths;
}

TEST_CASE("SwiGLU on a GPU has the CPU's bits", "[ops][gpu][gpu-device]") {
  for (const std::int64_t columns : widths_in_pieces()) {
    check("swiglu " + std::to_string(columns), [&](const Policy& policy) {
      const at::Tensor u = nasty(policy, {18, 2 * columns}, 1, 20),
                       y = empty(policy, {18, columns});
      swiglu(policy, u, y);
      const at::Tensor again = empty(policy, {18, columns});
      swiglu_backward(policy, values(policy, {18, columns}, 2), u, u, again);
      const at::Tensor v = reference::narrowed(nasty(policy, {18, 2 * columns}, 3, 20));
      const at::Tensor z = empty(policy, {18, columns}, at::kBFloat16);
      swiglu(policy, v, z);
      const at::Tensor narrow_again = at::empty_like(z);
      swiglu_backward(policy, reference::narrowed(values(policy, {18, columns}, 4)), v, v,
                      narrow_again);
      return Tensors{y, u, again, z, v, narrow_again};
    });
  }
}

TEST_CASE("GELU and ReLU on a GPU have the CPU's bits", "[ops][gpu][gpu-device]") {
  for (const Activation kind : {Activation::kGelu, Activation::kRelu}) {
    for (const std::int64_t columns : widths_in_pieces()) {
      check("activation " + std::to_string(columns), [&](const Policy& policy) {
        const at::Tensor u = nasty(policy, {18, columns}, 1, 20),
                         dy = values(policy, {18, columns}, 2), y = empty(policy, {18, columns}),
                         again = empty(policy, {18, columns});
        activation(policy, kind, u, y);
        activation_backward(policy, kind, dy, u, u, again);
        const at::Tensor v = reference::narrowed(nasty(policy, {18, columns}, 3, 20)),
                         z = at::empty_like(v), narrow_again = at::empty_like(v);
        activation(policy, kind, v, z);
        activation_backward(policy, kind, reference::narrowed(dy), v, v, narrow_again);
        return Tensors{y, u, again, z, v, narrow_again};
      });
    }
  }
}

TEST_CASE("RoPE on a GPU has the CPU's bits", "[ops][gpu][gpu-device]") {
  // Six heads of queries and keys, and twelve, of which a group takes eight and four.
  const auto check_rope = [](std::int64_t head_dim, std::int64_t heads) {
    check("rope " + std::to_string(head_dim), [&](const Policy& policy) {
      const AttentionShape shape{2, 9, heads, 2, head_dim};
      const RopeTable made = make_rope_table(1e4, head_dim, 40);
      const RopeTable table{to_device(policy, made.cos), to_device(policy, made.sin)};
      const at::Tensor a = values(policy, {18, (heads + 4) * head_dim}, 1);
      const at::Tensor b = a.clone(), c = a.clone(), d = reference::narrowed(a);
      rope(policy, table, shape, a);
      rope_backward(policy, table, shape, b);
      rope(policy, table, shape, integers(18, 40, 2), c);
      rope(policy, table, shape, d);
      return Tensors{a, b, c, d};
    });
  };
  for (const std::int64_t head_dim : {2, 30, 64, 136})
    for (const std::int64_t heads : {4, 10}) check_rope(head_dim, heads);
}

TEST_CASE("the embedding on a GPU has the CPU's bits", "[ops][gpu][gpu-device]") {
  for (const std::int64_t columns : widths_in_pieces()) {
    check("embedding " + std::to_string(columns), [&](const Policy& policy) {
      const at::Tensor ids = integers(50, 7, 1), table = values(policy, {9, columns}, 2);
      const at::Tensor x = empty(policy, {50, columns}), widened = empty(policy, {50, columns});
      const at::Tensor narrow = empty(policy, {50, columns}, at::kBFloat16);
      embedding(policy, ids, table, x);
      embedding(policy, ids, reference::narrowed(table), widened);
      embedding(policy, ids, reference::narrowed(table), narrow);
      const at::Tensor rounded = table.clone(), fp32 = table.clone();
      embedding_backward(policy, ids, values(policy, {50, columns}, 3), table);
      embedding_backward(policy, ids, values(policy, {50, columns}, 3), rounded, Rounding::kBf16);
      embedding_backward(policy, ids, narrow, fp32);
      return Tensors{x, widened, narrow, table, rounded, fp32};
    });
  }
}

TEST_CASE("norms of tensors on a GPU have the CPU's bits", "[ops][gpu][gpu-device]") {
  check("sums of squares", [](const Policy& policy) {
    const NamedTensors tensors = {{"b", values(policy, {3, 4096}, 1)},
                                  {"a", values(policy, {70001}, 2, 1e-21F)},
                                  {"c", values(policy, {0}, 3)},
                                  {"d", values(policy, {1}, 4)}};
    return Tensors{at::tensor(sums_of_squares(policy, tensors)),
                   at::tensor(std::vector<float>{norm(policy, tensors)})};
  });
}

TEST_CASE("optimizer updates of a list of tensors on a GPU have the CPU's bits",
          "[ops][gpu][gpu-device]") {
  for (const bool selective : {false, true}) {
    check("updates", [&](const Policy& policy) {
      std::vector<AdamWUpdate> adamw;
      std::vector<LionWUpdate> lionw;
      Tensors out;
      float grad_scale = 0.7F;
      for (const std::int64_t n : {1, 17, 0, 5000, 1024}) {
        const at::Tensor grad = nasty(policy, {n}, 1), p = values(policy, {n}, 2),
                         m = values(policy, {n}, 3);
        // Roots of everything from subnormals to large numbers.
        const at::Tensor v = to_device(policy, at::exp(reference::values({n}, 4, 100)).mul_(1e-2));
        const at::Tensor q = values(policy, {n}, 5), k = values(policy, {n}, 6);
        const AdamWStep step = {grad_scale, 0.99F, 0.1F,  0.95F,    0.05F,
                                1.3F,       1e-8F, 1e-3F, selective};
        const LionWStep sign = {grad_scale, 0.99F, 0.9F, 0.1F, 0.95F, 0.05F, 1e-3F, selective};
        adamw.push_back({step, grad, p, m, v});
        lionw.push_back({sign, grad, q, k});
        out.insert(out.end(), {p, m, v, q, k});
        grad_scale *= 0.5F;
      }
      adamw_update(policy, adamw);
      lionw_update(policy, lionw);
      return out;
    });
  }
}

TEST_CASE("gradients of parameters on a GPU are one chain over all rows",
          "[ops][gpu][gpu-device]") {
  // More rows than are in shared memory at a time, and a last turn that is not full.
  for (const std::int64_t rows : {127, 128, 129, 300}) {
    check("rows " + std::to_string(rows), [&](const Policy& policy) {
      constexpr std::int64_t kColumns = 21;
      Tensors out;
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        for (const bool centred : {true, false}) {
          NormBackward back;
          back.dy_MD = values(policy, {rows, kColumns}, 1).to(type);
          back.x_MD = values(policy, {rows, kColumns}, 2).to(type);
          back.stats = values(policy, {rows, centred ? 2 : 1}, 3);
          back.weight_D = values(policy, {kColumns}, 4).to(type);
          back.dx_MD = empty(policy, {rows, kColumns}, type);
          back.dweight_D = values(policy, {kColumns}, 5);
          if (centred) back.dbias_D = values(policy, {kColumns}, 6);
          if (type == at::kBFloat16) back.rounding = Rounding::kBf16;
          (centred ? layer_norm_backward : rms_norm_backward)(policy, back);
          out.push_back(back.dweight_D);
          if (centred) out.push_back(back.dbias_D);
        }
      }
      return out;
    });
  }
}

}  // namespace
}  // namespace olmo::ops::emulated
