"""The loops of least squares on a forest: plain Python over arrays, compiled by whoever calls them.

Regions stand with parents before their children. `consistent.py` has the formulas.
"""

# mypy: disable-error-code="no-untyped-def"
import numpy as np


def weigh(parent, missing, measured):  # noqa: PLR0912 - one loop up, one down
    """The weight ω of each region's own number, and the share s it gets of what its parent knows better."""
    n = len(parent)
    own, given = np.ones(n), np.zeros(n)
    spread, unknown, leaf = np.zeros(n), np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.bool_)
    below = measured.copy()
    for i in range(n):
        if parent[i] >= 0:
            leaf[parent[i]] = False
    for i in range(n - 1, -1, -1):
        if not leaf[i] and not missing[i] and unknown[i] == 0:
            if np.isinf(measured[i]):
                own[i], below[i] = 0.0, spread[i]
            elif measured[i] + spread[i] > 0:
                own[i] = spread[i] / (measured[i] + spread[i])
                below[i] = own[i] * measured[i]
        if parent[i] >= 0:
            if np.isinf(below[i]):
                unknown[parent[i]] += 1
            else:
                spread[parent[i]] += below[i]
    for i in range(n):
        above = parent[i]
        if above >= 0 and not missing[above]:
            if unknown[above] == 0 and spread[above] > 0:
                given[i] = below[i] / spread[above]
            elif unknown[above] == 1 and np.isinf(below[i]):  # the only unknown one is what the others leave
                given[i] = 1.0
    return own, given


def apply(parent, numbers, measured, own, given):
    """The variance of z̃, the estimate ẑ and its variance (infinite where nothing is known), for any ω and s.

    ẑ_r = α_r Σ z̃_c + rest, where the rest has nothing to do with what lies below r.
    """
    n = len(parent)
    up, total = np.zeros(n), np.zeros(n)
    below, spread = np.zeros(n), np.zeros(n)
    known = np.zeros(n, dtype=np.bool_)
    for i in range(n - 1, -1, -1):
        known[i] = own[i] == 0 or np.isfinite(measured[i])
        if own[i] > 0 and known[i]:
            up[i] = own[i] * numbers[i]
            below[i] = own[i] * own[i] * measured[i]
        if own[i] < 1:
            up[i] += (1 - own[i]) * total[i]
            below[i] += (1 - own[i]) ** 2 * spread[i]
        if parent[i] >= 0:
            total[parent[i]] += up[i]
            spread[parent[i]] += below[i]
    whole, variance = up.copy(), below.copy()
    alpha, rest = 1 - own, np.zeros(n)
    for i in range(n):
        above = parent[i]
        if known[i] and own[i] > 0:
            rest[i] = own[i] * own[i] * measured[i]
        if above >= 0 and given[i] > 0:
            turn = given[i] * (alpha[above] - 1)
            others = turn * turn * (spread[above] - below[i]) + given[i] ** 2 * rest[above]
            whole[i] = up[i] + given[i] * (whole[above] - total[above])
            variance[i] = (1 + turn) ** 2 * below[i] + others
            rest[i] = (1 + turn) ** 2 * rest[i] + others
            alpha[i] = (1 - own[i]) * (1 + turn)
        elif not known[i]:
            variance[i] = np.inf
    return below, whole, variance


def spread(parent, pull, given, own, measured, kurtosis):
    """Variance and fourth cumulant of Σ pull · ẑ, by the passes run backwards."""
    n = len(parent)
    passed = np.zeros(n)  # how the sum moves with ẑ of a region, through its children
    for i in range(n - 1, -1, -1):
        if parent[i] >= 0:
            passed[parent[i]] += given[i] * (pull[i] + passed[i])
    from_below = np.zeros(n)  # how it moves with z̃ of a region
    variance, fourth = 0.0, 0.0
    for i in range(n):
        above = parent[i]
        from_below[i] = pull[i] + passed[i]
        if above >= 0:
            from_below[i] += from_below[above] * (1 - own[above]) - passed[above]
        weight = from_below[i] * own[i]
        if weight != 0 and np.isfinite(measured[i]):
            part = weight * weight * measured[i]
            variance += part
            fourth += kurtosis[i] * part * part
    return variance, fourth
