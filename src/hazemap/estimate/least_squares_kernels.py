"""The loops of least squares on a forest: plain Python over arrays, compiled where there are many regions.

Regions stand with parents before their children. `tree_least_squares.py` has the formulas.
"""

# mypy: disable-error-code="no-untyped-def"
import numpy as np


def solve(parent, missing, numbers, measured):
    """ω and s of each region, the variance V of z̃, the estimate ẑ, and its variance: infinite where nothing is known.

    Given the sum of its siblings, z̃_c is s_c of it and a rest, of variance V_c (1 − s_c), that has nothing to do with
    anything else. So the variance of ẑ_c is that and s_c² times its parent's.
    """
    n = len(parent)
    own, given = np.ones(n), np.zeros(n)
    whole, below = numbers.copy(), measured.copy()
    total, spread = np.zeros(n), np.zeros(n)
    unknown = np.full(n, -1, dtype=np.int32)  # children of which nothing is known; −1 without children
    for i in range(n - 1, -1, -1):
        if unknown[i] == 0 and not missing[i]:
            if np.isinf(measured[i]):
                own[i], below[i], whole[i] = 0.0, spread[i], total[i]
            elif measured[i] + spread[i] > 0:
                own[i] = spread[i] / (measured[i] + spread[i])
                below[i] = own[i] * measured[i]
                whole[i] = own[i] * numbers[i] + (1 - own[i]) * total[i]
        above = parent[i]
        if above >= 0:
            unknown[above] = max(unknown[above], 0)
            if np.isinf(below[i]):
                unknown[above] += 1
            else:
                spread[above] += below[i]
                total[above] += whole[i]
    variance = below.copy()
    for i in range(n):
        above = parent[i]
        if above < 0 or missing[above]:
            continue
        if unknown[above] == 0 and spread[above] > 0:
            given[i] = below[i] / spread[above]
            whole[i] += given[i] * (whole[above] - total[above])
            variance[i] = below[i] * (1 - given[i]) + given[i] * given[i] * variance[above]
        elif unknown[above] == 1 and np.isinf(below[i]):  # the only unknown one is what the others leave
            given[i] = 1.0
            whole[i] = whole[above] - total[above]
            variance[i] = variance[above] + spread[above]
    return own, given, below, whole, variance


def spread(parent, pull, given, own, measured, kurtosis, turn):
    """Variance and fourth cumulant of Σ pull · ẑ, by the passes run backwards; `turn` says whose kurtosis it is."""
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
            fourth += kurtosis[turn[i]] * part * part
    return variance, fourth
