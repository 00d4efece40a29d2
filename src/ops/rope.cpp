#include "ops/rope.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/error.h"
#include "ops/dispatch.h"
#include "ops/shared_kernels.h"

namespace olmo::ops {
namespace {

// ln 2 in two parts; the first has 32 bits, so that its product with an exponent is exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

/// Nearest integer of a double well below 2^51, ties to even.
double nearest(double x) {
  constexpr double kMagic = 0x1.8p52;
  return (x + kMagic) - kMagic;
}

double power_of_two(std::int64_t n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

/// Taylor series Σ sign^k x^(2k) / ((first)(first+1)…(first+2k-1)), enough terms for |x| <= pi/4.
double even_series(double square, int first) {
  double sum = 1.0;
  for (int k = 9; k >= 1; --k)
    sum = 1.0 - square / ((first + 2 * k - 2) * (first + 2 * k - 1)) * sum;
  return sum;
}

/// theta^(2i/head_dim), every step rounded to fp32 as LibTorch does it.
std::vector<float> wavelengths(double theta, std::int64_t head_dim) {
  const double log_theta = portable_log(static_cast<float>(theta));
  std::vector<float> lengths;
  for (std::int64_t i = 0; i < head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(head_dim);
    lengths.push_back(static_cast<float>(portable_exp(exponent * log_theta)));
  }
  return lengths;
}

/// Where, in pairs, YaRN's ramp from rotations that keep their speed to slower ones lies.
struct Ramp {
  float begin, end;

  Ramp(const RopeScaling& scaling, double theta, std::int64_t head_dim) {
    const auto pair_that_turns = [&](double times) {
      const double length = static_cast<double>(scaling.original_max_position_embeddings);
      return static_cast<double>(head_dim) *
             (portable_log(length) - portable_log(times * 2 * std::numbers::pi)) /
             (2 * portable_log(theta));
    };
    begin = static_cast<float>(std::max(std::floor(pair_that_turns(scaling.beta_fast)), 0.0));
    end = static_cast<float>(
        std::min(std::ceil(pair_that_turns(scaling.beta_slow)), static_cast<double>(head_dim - 1)));
    if (begin == end) end += 0.001F;
  }
  /// 0: keeps its speed; 1: is slower by the whole factor.
  [[nodiscard]] float at(std::size_t pair) const {
    return std::clamp((static_cast<float>(pair) - begin) / (end - begin), 0.0F, 1.0F);
  }
};

std::vector<float> inverse_frequencies(double theta, std::int64_t head_dim,
                                       const std::optional<RopeScaling>& scaling) {
  std::vector<float> frequencies = wavelengths(theta, head_dim);
  if (!scaling) {
    for (float& value : frequencies) value = 1.0F / value;
    return frequencies;
  }
  const Ramp ramp(*scaling, theta, head_dim);
  for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
    float& value = frequencies[pair];
    const float kept = 1.0F - ramp.at(pair);
    const float slow = 1.0F / (static_cast<float>(scaling->factor) * value);
    value = slow * (1.0F - kept) + 1.0F / value * kept;
  }
  return frequencies;
}

/// What cosines and sines are multiplied with.
float attention_factor(const std::optional<RopeScaling>& scaling) {
  if (!scaling) return 1.0F;
  const double usual = scaling->factor > 1 ? 0.1 * portable_log(scaling->factor) + 1.0 : 1.0;
  return static_cast<float>(scaling->attention_factor.value_or(usual));
}

void check_table(const char* op, const RopeTable& table, const AttentionShape& shape,
                 std::int64_t length) {
  require_matrix(op, "table.cos", table.cos);
  require(op, "table.cos", table.cos, {table.cos.size(0), shape.head_dim / 2});
  require(op, "table.sin", table.sin, table.cos.sizes());
  if (table.cos.size(0) < length || shape.head_dim % 2 != 0) {
    throw Error(ErrorKind::kFailure,
                std::string(op) + ": a table of " + std::to_string(table.cos.size(0)) +
                    " positions cannot serve length " + std::to_string(length) + ", head_dim " +
                    std::to_string(shape.head_dim));
  }
}

/// `positions` is undefined where each row's is row % length.
void rotate(const char* op, const Context& context, const RopeTable& table,
            const AttentionShape& shape, const at::Tensor& positions, std::int64_t rows,
            const at::Tensor& qkv, float sign) {
  const auto columns = (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim;
  require_fp32_or_bf16(op, "qkv", qkv, {rows, columns});
  const at::Tensor there = positions.defined() ? to_device(context.policy, positions) : positions;
  const bool gpu = on_gpu(context, op, {table.cos, table.sin, there, qkv});
  for_element_type(qkv, [&]<class Element>() {
    const RopeArgs<Element> args{
        .data = kernel_output<Element>(qkv),
        .stride = columns,
        .heads = shape.n_heads + shape.n_kv_heads,
        .half = shape.head_dim / 2,
        .length = shape.length,
        .positions = there.defined() ? kernel_input<std::int64_t>(there) : nullptr,
        .cos = kernel_input<float>(table.cos),
        .sin = kernel_input<float>(table.sin)};
    if (gpu) {
      launch(context, gpu_kernels::kRope<Element>, blocks_of_pieces(rows, args.heads, kRopePiece),
             args, sign, rows);
      return;
    }
    const auto& kernels = pointwise_kernels_for(context.policy.isa).elements.of<Element>();
    parallel_for(0, rows, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
      kernels.rope(args, sign, begin, end);
    });
  });
  context.traced(qkv);
}

}  // namespace

RopeTable make_rope_table(double theta, std::int64_t head_dim, std::int64_t length,
                          const std::optional<RopeScaling>& scaling) {
  if (scaling && !(theta > 1)) {
    throw Error(
        ErrorKind::kUsage,
        "make_rope_table: expected a theta above 1 with a scaling, got " + std::to_string(theta));
  }
  if (!(theta > 0 && theta < 1e30) || head_dim < 2 || head_dim % 2 != 0 || head_dim > 65536 ||
      length < 1 || length > (1 << 24)) {
    throw Error(
        ErrorKind::kUsage,
        "make_rope_table: expected 0 < theta < 1e30, an even head_dim of 2..65536 and a length of "
        "1..2^24, got theta " +
            std::to_string(theta) + ", head_dim " + std::to_string(head_dim) + ", length " +
            std::to_string(length));
  }
  const auto half = head_dim / 2;
  const auto frequencies = inverse_frequencies(theta, head_dim, scaling);
  const float factor = attention_factor(scaling);
  RopeTable table{new_tensor({length, half}, at::kFloat), new_tensor({length, half}, at::kFloat)};
  auto* cosines = mutable_host_span<float>(table.cos).data();
  auto* sines = mutable_host_span<float>(table.sin).data();
  parallel_for(0, length, row_grain(64 * half), [&](std::int64_t begin, std::int64_t end) {
    for (auto position = begin; position < end; ++position) {
      for (std::int64_t i = 0; i < half; ++i) {
        const float angle = static_cast<float>(position) * frequencies[static_cast<std::size_t>(i)];
        const auto [sine, cosine] = portable_sin_cos(angle);
        cosines[position * half + i] = static_cast<float>(cosine) * factor;
        sines[position * half + i] = static_cast<float>(sine) * factor;
      }
    }
  });
  return table;
}

void rope(const Context& context, const RopeTable& table, const AttentionShape& shape,
          const at::Tensor& qkv) {
  check_table("rope", table, shape, shape.length);
  rotate("rope", context, table, shape, at::Tensor(), shape.batch * shape.length, qkv, 1.0F);
}

void rope(const Context& context, const RopeTable& table, const AttentionShape& shape,
          const at::Tensor& positions_M, const at::Tensor& qkv) {
  require("rope", "positions", positions_M, {positions_M.defined() ? positions_M.numel() : 0},
          at::kLong);
  const auto rows = positions_M.numel();
  std::int64_t length = 0;
  for (const std::int64_t position : host_span<std::int64_t>(positions_M)) {
    OLMO_CHECK(position >= 0);
    length = std::max(length, position + 1);
  }
  check_table("rope", table, shape, length);
  rotate("rope", context, table, shape, positions_M, rows, qkv, 1.0F);
}

void rope_backward(const Context& context, const RopeTable& table, const AttentionShape& shape,
                   const at::Tensor& dqkv) {
  check_table("rope_backward", table, shape, shape.length);
  rotate("rope_backward", context, table, shape, at::Tensor(), shape.batch * shape.length, dqkv,
         -1.0F);
}

SinCos portable_sin_cos(double x) {
  // pi/2 in three parts (Cody and Waite): the first two have 29 bits, so their products with n <
  // 2^24 are exact.
  constexpr double kHigh = 0x1.921fb54p+0;
  constexpr double kMiddle = 0x1.10b4611p-30;
  constexpr double kLow = 0x1.4c4c6628b80dcp-59;
  const double n = nearest(x * 0x1.45f306dc9c883p-1);
  const double r = ((x - n * kHigh) - n * kMiddle) - n * kLow;
  const double square = r * r;
  const double sine = r * even_series(square, 2);
  const double cosine = even_series(square, 1);
  switch (static_cast<std::int64_t>(n) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

double portable_exp(double x) {
  const double n = nearest(x * 0x1.71547652b82fep+0);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = 1.0;
  for (int k = 16; k >= 1; --k) sum = 1.0 + r / k * sum;
  return sum * power_of_two(static_cast<std::int64_t>(n));
}

double portable_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // log m = 2 atanh((m-1)/(m+1)), |s| <= 0.1716.
  const double s = (m - 1.0) / (m + 1.0);
  const double square = s * s;
  double sum = 0.0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  const auto e = static_cast<double>(exponent);
  return e * kLn2High + (2.0 * s * sum + e * kLn2Low);
}

}  // namespace olmo::ops
