// Elementary functions of doubles for the host: the same bits on every machine, where libm's
// differ. Built from + - * / only.
#pragma once

namespace olmo::ops {

struct SinCos {
  double sin;
  double cos;
};

/// For 0 <= x < 2^24 that is a binary32 number; absolute error below 2^-50.
SinCos portable_sin_cos(double x);

/// e^x for |x| <= 700, natural logarithm of a positive normal x; relative error below 2^-49.
double portable_exp(double x);
double portable_log(double x);

}  // namespace olmo::ops
