"""Derives the polynomials of src/ops/kernels/math.h. Needs mpmath and numpy: `python3 make_math.py` prints the constants.

exp(r) = 1 + r + r^2/2 + r^3 q(r) on |r| <= ln2/2, log(1+f) = f - f^2/2 + f^3 p(f) on sqrt(1/2) <= 1+f <= sqrt(2).
The normal distribution function is 1/2 + x n(x^2) on |x| <= 5/4 and exp(-x^2/2) s f(s) with s = 1/(1 - 35/128 x) on -14.5 <= x <= 0.
Remez exchange in 40 digits under weights that bound the relative error; then the coefficients are rounded to binary32.
"""
import numpy as np
from mpmath import mp, mpf, erf, erfc, exp, expm1, linspace, log, log1p, lu_solve, matrix, sqrt

mp.dps = 40


def polynomial(coefficients, x):
    return sum(c * x**k for k, c in enumerate(coefficients))


def fit(target, weight, lo, hi, degree):
    """Coefficients of the minimax polynomial for weight(x) * (p(x) - target(x)) on [lo, hi]."""
    free = degree + 1
    points = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * k / free) for k in range(free + 1)]
    grid = linspace(lo, hi, 2001)
    targets = [target(x) for x in grid]
    for _ in range(12):
        system, right = matrix(free + 1, free + 1), matrix(free + 1, 1)
        for i, x in enumerate(points):
            for k in range(free):
                system[i, k] = weight(x) * x**k
            system[i, free] = (-1) ** i
            right[i] = weight(x) * target(x)
        solution = lu_solve(system, right)
        coefficients = [solution[k] for k in range(free)]
        errors = [weight(x) * (polynomial(coefficients, x) - t) for x, t in zip(grid, targets)]
        extrema, start = [], 0
        for i in range(1, len(grid) + 1):
            if i == len(grid) or (errors[i] > 0) != (errors[start] > 0):
                extrema.append(max(range(start, i), key=lambda j: abs(errors[j])))
                start = i
        assert len(extrema) == free + 1, "the exchange lost a point"
        points = [grid[i] for i in extrema]
        if abs(errors[extrema[0]]) < abs(solution[free]) * mpf("1.001"):
            break
    return coefficients


def to_binary32(x):
    return mpf(float(np.float32(float(x))))


def rounded_fit(target, weight, lo, hi, degree):
    coefficients = [to_binary32(c) for c in fit(target, weight, lo, hi, degree)]
    return coefficients, max(abs(weight(x) * (polynomial(coefficients, x) - target(x))) for x in linspace(lo, hi, 2001))


def show(name, values):
    print(name, ", ".join(f"{float(v).hex()}f" for v in values))


def main():
    def series(x, terms):  # sum x^k * terms(k): exact enough near 0, where the closed forms cancel
        return sum(x**k * terms(k) for k in range(60))

    q = lambda x: series(x, lambda k: 1 / mp.factorial(k + 3)) if abs(x) < mpf("0.01") else (expm1(x) - x - x * x / 2) / x**3
    half = log(2) / 2 * mpf("1.0001")
    weight = lambda x: (abs(x) ** 3 + mpf("0.001")) / exp(x)
    coefficients, worst = rounded_fit(q, weight, -half, half, 4)
    show("exp q0..q4:", coefficients)
    print("  weighted error after rounding 2^%.1f" % float(mp.log(worst, 2)))

    p = lambda x: series(x, lambda k: (-1) ** k / mpf(k + 3)) if abs(x) < mpf("0.05") else (log1p(x) - x + x * x / 2) / x**3
    weight = lambda x: x**2 + mpf("0.01")  # bounds the true weight x^3 / log1p(x), which vanishes at 0
    coefficients, worst = rounded_fit(p, weight, sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1, 9)
    show("log p0..p9:", coefficients)
    print("  weighted error after rounding 2^%.1f" % float(mp.log(worst, 2)))

    n = lambda square: erf(sqrt(square / 2)) / (2 * sqrt(square)) if square > mpf("1e-9") else (1 - square / 6) / sqrt(2 * mp.pi)
    coefficients, worst = rounded_fit(n, lambda square: sqrt(square) + mpf("0.02"), mpf(0), mpf("1.25") ** 2, 5)
    show("normal n0..n5:", coefficients)
    print("  weighted error after rounding 2^%.1f" % float(mp.log(worst, 2)))

    step = mpf(35) / 128
    distance = lambda s: (1 / s - 1) / step
    f = lambda s: erfc(distance(s) / sqrt(mpf(2))) / 2 * exp(distance(s) ** 2 / 2) / s
    coefficients, worst = rounded_fit(f, lambda s: 1 / f(s), 1 / (1 + step * mpf("14.5")), mpf(1), 8)
    show("normal f0..f8:", coefficients)
    print("  relative error after rounding 2^%.1f" % float(mp.log(worst, 2)))
    show("1/sqrt(2 pi):", [to_binary32(1 / sqrt(2 * mp.pi))])

    high = mp.floor(log(2) * 2**15) / mpf(2) ** 15
    show("ln 2, its first 15 bits and the rest:", [high, to_binary32(log(2) - high)])
    show("log2e:", [to_binary32(1 / log(2))])


if __name__ == "__main__":
    main()
