#include "ops/host_math.h"

#include <bit>
#include <cstdint>

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

}  // namespace

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
