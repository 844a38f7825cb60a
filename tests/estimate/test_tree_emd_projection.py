"""The exact tree solver against a linear programme, on random trees with any weights."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array, eye_array, hstack

from hazemap.errors import InputError
from hazemap.estimate.tree_emd_projection import nearest
from research.benchmarks.nearest_grid import nearest_grid


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


@settings(deadline=None, max_examples=80)
@given(trees)
def test_no_linear_programme_finds_a_cheaper_solution(tree):
    parent, numbers, weights = np.array(tree[0]), np.array(tree[1], float), np.array(tree[2])
    parent = np.minimum(parent, np.arange(len(parent)) - 1)
    parent = np.maximum.accumulate(parent)
    mass = nearest(parent, numbers, weights)
    assert (mass == np.rint(mass)).all()
    assert cost(parent, numbers, weights, mass) == pytest.approx(optimum(parent, numbers, weights), abs=1e-7)


def parents(sizes):
    starts = np.cumsum([0, *sizes])
    inner = [np.repeat(np.arange(starts[i], starts[i + 1]), 4) for i in range(len(sizes) - 1)]
    return np.concatenate([np.full(sizes[0], -1), *inner])


def masses_of_all(levels, mass):
    found = [mass]
    for _ in levels[:-1]:
        found.append(found[-1].reshape(-1, 4).sum(axis=1))
    return np.concatenate(found[::-1])


grids = st.tuples(st.integers(1, 3), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(
        st.just([shape[0] * 4**i for i in range(shape[1] if shape[1] < 4 or shape[0] < 2 else 3)]),
        st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 7.0, 0.7071, 1e-9, 1e20]), min_size=4, max_size=4),
        st.integers(0, 2**32 - 1),
    )
)


@settings(deadline=None, max_examples=60)
@given(grids)
def test_a_grid_is_a_tree(grid):
    sizes, weights, seed = grid
    rng, weights = np.random.default_rng(seed), np.array(weights[: len(sizes)])
    levels = [rng.integers(-9, 20, size).astype(float) for size in sizes]
    mass = nearest_grid(levels, weights)
    assert (mass == np.rint(mass)).all()
    numbers, each = np.concatenate(levels), np.repeat(weights, sizes)
    parent = parents(sizes)
    other = nearest(parent, numbers, each)
    grids_cost, trees_cost = (cost(parent, numbers, each, m) for m in (masses_of_all(levels, mass), other))
    assert grids_cost == pytest.approx(trees_cost, rel=1e-12, abs=1e-7)
    if not np.isin(each, (1e-9, 1e20)).any():  # which are too little and too much for a linear programme
        assert grids_cost == pytest.approx(optimum(parent, numbers, each), abs=1e-7)


def test_numbers_need_not_be_whole():
    rng = np.random.default_rng(1)
    levels = [rng.normal(1, 3, 4**i) for i in range(1, 5)]
    sizes, weights = [len(level) for level in levels], [2.0**-i for i in range(1, 5)]
    parent, numbers, each = parents(sizes), np.concatenate(levels), np.repeat(weights, sizes)
    mass = masses_of_all(levels, nearest_grid(levels, weights))
    assert cost(parent, numbers, each, mass) == pytest.approx(optimum(parent, numbers, each), abs=1e-7)


def test_a_grid_is_solved_in_few_bytes_a_leaf_and_left_as_it_was():
    rng = np.random.default_rng(2)
    levels = [rng.integers(-9, 20, 4**i).astype(float) for i in range(2, 9)]
    before = [level.copy() for level in levels]
    nearest_grid(levels, [2.0**-i for i in range(2, 9)])
    tracemalloc.start()
    nearest_grid(levels, [2.0**-i for i in range(2, 9)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 4**8
    assert all(np.array_equal(one, other) for one, other in zip(levels, before, strict=True))


def test_a_grid_needs_whole_levels_and_a_weight_for_each():
    with pytest.raises(InputError, match="four times"):
        nearest_grid([np.ones(1), np.ones(3)], [1.0, 1.0])
    with pytest.raises(InputError, match="2 levels need as many weights"):
        nearest_grid([np.ones(1), np.ones(4)], [1.0])
    with pytest.raises(InputError, match="finite"):
        nearest_grid([np.ones(1), np.full(4, np.nan)], [1.0, 1.0])


def test_nodes_out_of_order_are_refused():
    with pytest.raises(InputError, match="level by level"):
        nearest(np.array([1, -1]), np.ones(2), np.ones(2))
    with pytest.raises(InputError, match="weights"):
        nearest(np.array([-1]), np.ones(1), -np.ones(1))
