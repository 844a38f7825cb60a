"""The four scores of two heatmaps (Ghazi et al. 2022, section 4), against their definitions from end to end."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from hazemap.lab.compare.density_metrics import density, kl, pearson, similarity
from hazemap.lab.compare.earth_movers_distance import emd
from research.compare.gaussian_blur import heatmap


def blurred(grid, variance):
    """Every pixel's mass goes to all pixels of the map, as a Gaussian of the distance that is cut at the border."""
    pixels = [(r, c) for r in range(grid.shape[0]) for c in range(grid.shape[1])]
    out = dict.fromkeys(pixels, 0.0)
    for r, c in pixels:
        bells = {(i, j): math.exp(-((r - i) ** 2 + (c - j) ** 2) / (2 * variance)) for i, j in pixels}
        for at, bell in bells.items():
            out[at] += grid[r, c] * bell / math.fsum(bells.values())
    return out


def carried(p, q, longest):
    """Least Σ plan · distance with marginals p and q."""
    pixels, n = list(p), len(p)
    apart = [(abs(a - c) + abs(b - d)) / longest for a, b in pixels for c, d in pixels]
    leaves = np.kron(np.eye(n), np.ones(n))
    arrives = np.kron(np.ones(n), np.eye(n))
    marginals = np.array([*p.values(), *q.values()])
    return linprog(apart, A_eq=np.vstack([leaves, arrives]), b_eq=marginals, method="highs").fun


def correlation(p, q):
    n, a, b = len(p), list(p.values()), list(q.values())
    covariance = math.fsum(x * y for x, y in zip(a, b, strict=True)) / n - math.fsum(a) / n * math.fsum(b) / n
    spread = [math.fsum(x * x for x in v) / n - (math.fsum(v) / n) ** 2 for v in (a, b)]
    return covariance / math.sqrt(spread[0] * spread[1])


pairs = st.tuples(st.integers(2, 5), st.integers(2, 5), st.integers(0, 10**6), st.sampled_from([0.2, 1.0, 4.0]))


@settings(max_examples=12, deadline=None)
@given(pairs)
def test_scores_of_heatmaps_are_their_definitions(case):
    rows, columns, seed, variance = case
    rng = np.random.default_rng(seed)
    maps = [density(rng.pareto(1, (rows, columns)) * (rng.random((rows, columns)) < 0.6)) for _ in range(2)]
    ours = [heatmap(map_, variance) for map_ in maps]
    p, q = (blurred(map_, variance) for map_ in maps)
    assert similarity(*ours) == pytest.approx(math.fsum(min(p[at], q[at]) for at in p), rel=1e-9)
    assert kl(*ours) == pytest.approx(math.fsum(p[at] * math.log(p[at] / q[at]) for at in p), rel=1e-6, abs=1e-12)
    assert emd(*ours) == pytest.approx(carried(p, q, max(rows, columns)), abs=1e-8)
    if min(np.ptp(each) for each in ours) > 1e-6:
        assert pearson(*ours) == pytest.approx(correlation(p, q), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 2.0, 8.0]))
def test_away_from_the_border_a_blur_brings_maps_nearer(seed, variance):
    """Lemma B.1: each person's mass can be carried along with the person."""
    rng = np.random.default_rng(seed)
    maps = np.zeros((2, 64, 64))
    maps[:, 28:36, 28:36] = rng.pareto(1, (2, 8, 8)) * (rng.random((2, 8, 8)) < 0.5)
    p, q = (density(map_) for map_ in maps)
    assert emd(heatmap(p, variance), heatmap(q, variance)) <= emd(p, q) + 1e-6
