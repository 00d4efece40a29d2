"""Makes tests/data/report/*.json: what scipy, statsmodels and numpy say about the statistics of a parity report.

Needs: pip install scipy==1.17.1 statsmodels==0.15.0 numpy==2.4.6
Run:   python3 tests/goldens/make_statistics.py

distributions.json  values of distribution functions
paired.json         2x2 tables: exact and mid-p McNemar (statsmodels), Tango's score interval and equivalence p-value by
                    maximising the constrained likelihood numerically (not by Tango's formula), Clopper-Pearson's limit
multiplicity.json   Holm's adjustment (statsmodels)
resampling.json     bootstrap intervals of scipy for a stratified mean and a ratio; quantiles
runs.json           permutation tests, Welch's TOST (statsmodels), sign test and regression of block means
"""

import itertools
import json
import math
import pathlib

import numpy as np
from scipy import optimize, stats
import statsmodels.api as sm
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_ind

OUT = pathlib.Path(__file__).parents[1] / "data" / "report"


def write(name, content):
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / name).write_text(json.dumps(content, indent=None, separators=(",", ":")) + "\n")


def distributions():
    rows = []
    for z in (-8.0, -3.2, -1.0, 0.0, 0.5, 1.96, 5.5):
        rows.append(dict(name="normal_cdf", arguments=[z], value=stats.norm.cdf(z)))
    for p in (1e-12, 0.001, 0.05, 0.5, 0.9, 0.975, 0.999999):
        rows.append(dict(name="normal_quantile", arguments=[p], value=stats.norm.ppf(p)))
    for df in (1.0, 2.5, 7.0, 42.3, 1e6):
        for t in (-6.0, -0.7, 0.0, 2.2):
            rows.append(dict(name="student_t_cdf", arguments=[t, df], value=stats.t.cdf(t, df)))
        for p in (0.001, 0.05, 0.8, 0.975):
            rows.append(dict(name="student_t_quantile", arguments=[p, df], value=stats.t.ppf(p, df)))
    for p, df in ((0.001, 1.0), (0.05, 3.0), (0.5, 7.0), (0.9987, 40.0)):
        rows.append(dict(name="chi_squared_quantile", arguments=[p, df], value=stats.chi2.ppf(p, df)))
    for k, n, p in ((0, 5, 0.5), (3, 10, 0.5), (11, 299, 0.01), (250, 10042, 0.02), (4, 4, 0.3), (0, 0, 0.5)):
        rows.append(dict(name="binomial_pmf", arguments=[k, n, p], value=stats.binom.pmf(k, n, p)))
        rows.append(dict(name="binomial_cdf", arguments=[k, n, p], value=stats.binom.cdf(k, n, p)))
    for k, n, alpha in ((0, 299, 0.05), (3, 500, 0.05), (10, 10, 0.025), (77, 10042, 0.025)):
        value = 1.0 if k == n else stats.beta.ppf(1 - alpha, k + 1, n - k)
        rows.append(dict(name="binomial_upper_limit", arguments=[k, n, alpha], value=value))
    return rows


def score_z(lost, gained, n, delta):
    """The score statistic of "gained share - lost share = delta", the constrained likelihood maximised numerically."""
    low, high = max(0.0, -delta), (1 - delta) / 2  # of the lost share q; gained q + delta, concordant 1 - 2q - delta

    def slope(q):  # the derivative of the log-likelihood, times q, q + delta and 1 - 2q - delta, which are not negative
        rest = 1 - 2 * q - delta
        return lost * (q + delta) * rest + gained * q * rest - 2 * (n - lost - gained) * q * (q + delta)

    edge = 1e-13 * (high - low)
    if slope(low + edge) <= 0:
        q = low
    elif slope(high - edge) >= 0:
        q = high
    else:
        q = optimize.brentq(slope, low + edge, high - edge, xtol=1e-18, rtol=1e-15)
    return (gained - lost - n * delta) / math.sqrt(n * (2 * q + delta - delta * delta))


def tango_limits(lost, gained, n, level):
    z = stats.norm.ppf((1 + level) / 2)
    estimate = (gained - lost) / n

    def limit(sign, end):
        start = estimate + math.copysign(1e-12, end)
        return optimize.brentq(lambda d: score_z(lost, gained, n, d) - sign * z, start, end, xtol=1e-15)

    return limit(+1, -1 + 1e-9), limit(-1, 1 - 1e-9)


def paired():
    rows = []
    tables = [(212, 13, 9, 265), (1, 7, 1, 12), (290, 0, 0, 9), (500, 1, 0, 499), (3000, 25, 61, 184), (40, 30, 25, 5),
              (5000, 150, 161, 4731), (0, 0, 3, 7), (150, 0, 12, 137), (6, 2, 2, 0)]
    for both, lost, gained, neither in tables:
        n = both + lost + gained + neither
        row = dict(table=[both, lost, gained, neither])
        exact = mcnemar([[both, lost], [gained, neither]], exact=True).pvalue if lost + gained else 1.0
        row["exact_p"] = exact
        tail = stats.binom.pmf(min(lost, gained), lost + gained, 0.5)
        row["mid_p"] = 1.0 if lost == gained else exact - tail
        for level in (0.9, 0.95, 0.99):
            row[f"tango_{level}"] = tango_limits(lost, gained, n, level)
        row["z"] = [[d, score_z(lost, gained, n, d)] for d in (-0.3, -0.02, 0.01, 0.1)]
        net = gained - lost
        row["upper_0.05"] = stats.beta.ppf(0.95, net + 1, n - net) if net >= 0 else None
        row["lower_0.05"] = -stats.beta.ppf(0.95, -net + 1, n + net) if net <= 0 else None
        rows.append(row)
    return rows


def multiplicity():
    rng = np.random.default_rng(5)
    lists = [[0.01, 0.04, 0.03, 0.005], [0.5], [0.02, 0.02, 0.02], list(rng.uniform(0, 0.2, 8)), [1.0, 0.0, 0.6]]
    return [dict(p=p, holm=list(multipletests(p, method="holm")[1])) for p in lists]


def resampling():
    rng = np.random.default_rng(11)
    tasks = [rng.choice([-1.0, 0.0, 1.0], size=n, p=[d / 2, 1 - d, d / 2]) for n, d in ((299, 0.05), (500, 0.03), (1267, 0.08))]
    result = stats.bootstrap(tasks, lambda *x, axis=-1: sum(t.mean(axis=axis) for t in x) / len(x), n_resamples=20000,
                             confidence_level=0.9, method="percentile", rng=1, batch=200)
    documents = rng.integers(200, 5000, size=150)
    differences = documents * rng.normal(0.001, 0.01, size=150)
    ratio = stats.bootstrap((differences, documents.astype(float)), lambda d, w, axis=-1: d.sum(axis=axis) / w.sum(axis=axis),
                            paired=True, n_resamples=20000, confidence_level=0.9, method="percentile", rng=2)
    values = np.sort(rng.normal(size=37))
    return dict(
        strata=[list(map(int, t)) for t in tasks], strata_interval=list(result.confidence_interval),
        strata_error=float(result.standard_error),
        weights=list(map(int, documents)), differences=list(map(float, differences)),
        ratio_interval=list(ratio.confidence_interval), ratio_error=float(ratio.standard_error),
        values=list(map(float, values)),
        quantiles=[[p, float(np.quantile(values, p))] for p in (0.0, 0.05, 0.31, 0.5, 0.95, 1.0)])


def all_relabellings(a, b):
    pooled = np.array(a + b)
    observed = abs(np.mean(b) - np.mean(a))
    extreme = total = 0
    for chosen in itertools.combinations(range(len(pooled)), len(a)):
        mask = np.zeros(len(pooled), bool)
        mask[list(chosen)] = True
        total += 1
        extreme += abs(pooled[~mask].mean() - pooled[mask].mean()) >= observed - 1e-12
    return extreme / total


def runs():
    rng = np.random.default_rng(3)
    groups = []
    for size_a, size_b, shift in ((4, 4, 0.0), (4, 4, 0.5), (3, 5, 0.02), (6, 6, 0.03), (2, 7, 0.1)):
        a = [round(x, 6) for x in rng.normal(2.5, 0.02, size_a)]
        b = [round(x, 6) for x in rng.normal(2.5 + shift, 0.03, size_b)]
        if size_a == size_b:
            library = stats.permutation_test((a, b), lambda x, y, axis: y.mean(axis=axis) - x.mean(axis=axis),
                                             permutation_type="independent", n_resamples=np.inf).pvalue
            assert abs(library - all_relabellings(a, b)) < 1e-12
        p, _, _ = ttost_ind(b, a, -0.03, 0.03, usevar="unequal")
        welch = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.9)
        groups.append(dict(a=a, b=b, permutation_p=all_relabellings(a, b), tost_p=float(p), interval=[welch.low, welch.high]))
    values = np.round(rng.normal(0.001, 0.01, 403) + np.linspace(0, 0.004, 403), 7)
    block = 20
    first = len(values) % block
    means = values[first:].reshape(-1, block).mean(axis=1)
    centres = first + np.arange(len(means)) * block + (block - 1) / 2
    line = stats.linregress(centres, means)
    drift = dict(values=list(map(float, values)), block=block, positive=int((means > 0).sum()), negative=int((means < 0).sum()),
                 sign_p=stats.binomtest(int((means > 0).sum()), len(means)).pvalue, slope=line.slope, slope_p=line.pvalue)
    a, b = groups[1]["a"] + groups[3]["a"], groups[1]["b"] + groups[3]["b"]
    t = stats.ttest_rel(b, a)
    interval = t.confidence_interval(0.9)
    differences = [round(y - x, 6) for x, y in zip(a, b)]
    flips = stats.permutation_test((np.array(differences),), lambda x, axis: x.mean(axis=axis), permutation_type="samples",
                                   n_resamples=np.inf).pvalue
    paired = dict(differences=differences, p=t.pvalue, interval=[interval.low, interval.high], permutation_p=flips)
    return dict(groups=groups, drift=drift, paired=paired, clusters=clusters())


def clusters():
    """One mean with errors in clusters of unequal size."""
    rng = np.random.default_rng(8)
    cluster = np.repeat(np.arange(9), rng.integers(1, 7, 9))
    values = np.round(rng.normal(0, 0.02, 9)[cluster] + rng.normal(0.01, 0.01, len(cluster)), 6)
    fit = sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds=dict(groups=cluster, use_correction=False), use_t=True)
    return dict(differences=list(map(float, values)), cluster=list(map(int, cluster)), value=float(fit.params[0]),
                error_without_correction=float(fit.bse[0]))


if __name__ == "__main__":
    write("distributions.json", distributions())
    write("paired.json", paired())
    write("multiplicity.json", multiplicity())
    write("resampling.json", resampling())
    write("runs.json", runs())
