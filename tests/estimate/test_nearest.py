"""The exact tree solver against a linear programme, on random trees with any weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array, eye_array, hstack

from hazemap.errors import InputError
from hazemap.estimate.nearest import nearest, nearest_grid


def cost(parent, numbers, weights, mass):
    inner = np.zeros(len(parent))
    has = np.isin(np.arange(len(parent)), parent)
    inner[~has] = mass[~has]
    for v in range(len(parent) - 1, 0, -1):
        if parent[v] >= 0:
            inner[parent[v]] += inner[v]
    assert (mass >= 0).all() and np.allclose(inner, mass)
    return float((weights * np.abs(numbers - inner)).sum())


def optimum(parent, numbers, weights):
    """The same by HiGHS: x ≥ 0, |ŷ − Px| ≤ t."""
    n = len(parent)
    leaf = np.flatnonzero(~np.isin(np.arange(n), parent))
    rows, columns = [], []
    for j, v in enumerate(leaf):
        above = v
        while above >= 0:
            rows.append(above), columns.append(j)
            above = parent[above]
    p = coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, len(leaf))).tocsr()
    a = hstack([p, eye_array(n), -eye_array(n)])
    c = np.concatenate([np.zeros(len(leaf)), weights, weights])
    return linprog(c, A_eq=a, b_eq=numbers, method="highs").fun


trees = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(0, 1, exclude_max=True), min_size=n, max_size=n).map(
            lambda luck: np.sort([int(u * i) - (u < 0.1) if i else -1 for i, u in enumerate(luck)])
        ),
        st.lists(st.integers(-9, 20), min_size=n, max_size=n),
        st.lists(st.sampled_from([0.0, 0.25, 1.0, 1.5, 7.0, 0.7071]), min_size=n, max_size=n),
    )
)


@settings(deadline=None, max_examples=300)
@given(trees)
def test_no_linear_programme_finds_a_cheaper_solution(tree):
    parent, numbers, weights = np.array(tree[0]), np.array(tree[1], float), np.array(tree[2])
    parent = np.minimum(parent, np.arange(len(parent)) - 1)
    parent = np.maximum.accumulate(parent)
    mass = nearest(parent, numbers, weights)
    assert (mass == np.rint(mass)).all()
    assert cost(parent, numbers, weights, mass) == pytest.approx(optimum(parent, numbers, weights), abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_a_grid_is_a_tree(seed):
    rng = np.random.default_rng(seed)
    levels = [rng.normal(1, 3, 4**i) for i in range(1, 5)]
    weights = [2.0**-i for i in range(1, 5)]
    mass = nearest_grid(levels, weights)
    sums, whole, parent, numbers, w = (
        mass,
        0.0,
        [],
        np.concatenate(levels),
        np.repeat(weights, [4**i for i in range(1, 5)]),
    )
    for level, weight in zip(levels[::-1], weights[::-1], strict=True):
        whole += weight * np.abs(level - sums).sum()
        sums = sums.reshape(-1, 4).sum(axis=1)
    start = 0
    parent = [-1] * 4
    for i in range(1, 4):
        parent += [start + j // 4 for j in range(4 ** (i + 1))]
        start += 4**i
    assert whole == pytest.approx(optimum(np.array(parent), numbers, w), abs=1e-7)


def test_nodes_out_of_order_are_refused():
    with pytest.raises(InputError, match="level by level"):
        nearest(np.array([1, -1]), np.ones(2), np.ones(2))
    with pytest.raises(InputError, match="weights"):
        nearest(np.array([-1]), np.ones(1), -np.ones(1))
