"""The earth mover's distance: against linear programmes, against another library, and by its own proof."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array

from hazemap.errors import InputError
from hazemap.lab.compare.density_metrics import density
from hazemap.lab.compare.earth_movers_distance import emd, flow

ONE = 2e-12  # the error that `emd` states, at any size tried here


def places(shape):
    return np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, 2)


def programme(p, q):
    """The definition: a number for each pair of pixels, marginals p and q, least cost."""
    n = p.size
    at = places(p.shape)
    apart = np.abs(at[:, None] - at).sum(-1) / max(p.shape)
    pair = np.arange(n * n)
    rows, columns = np.concatenate([pair // n, n + pair % n]), np.concatenate([pair, pair])
    marginals = coo_array((np.ones(2 * n * n), (rows, columns))).tocsr()
    return linprog(apart.ravel(), A_eq=marginals, b_eq=np.concatenate([p.ravel(), q.ravel()]), method="highs").fun


def marginal_emd(p, q):
    """The distance of the row sums plus that of the column sums: carrying mass moves its shadow on either axis."""
    return sum(np.abs(np.cumsum((p - q).sum(axis=axis))[:-1]).sum() for axis in (0, 1)) / max(p.shape)


def tree_emd(p, q):
    """The distance along the quadtree: mass that differs climbs to the common parent (Indyk and Thaper 2003)."""
    side = 1 << (max(p.shape) - 1).bit_length()
    slowly, cell = 0.0, 1
    while cell < side:
        for r in range(0, side, cell):
            for c in range(0, side, cell):
                slowly += cell * abs(p[r : r + cell, c : c + cell].sum() - q[r : r + cell, c : c + cell].sum())
        cell *= 2
    return slowly / max(p.shape)


def pairs(most):
    """Two maps of one shape, from nearly empty to full."""
    return st.tuples(
        st.integers(1, most), st.integers(1, most), st.integers(0, 10**6), st.floats(0.1, 1), st.floats(0.1, 1)
    ).map(drawn)


def drawn(recipe):
    rows, columns, seed, one, other = recipe
    rng = np.random.default_rng(seed)
    maps = [rng.integers(1, 9, (rows, columns)) * (rng.random((rows, columns)) < part) for part in (one, other)]
    return tuple(density(m if m.any() else np.ones_like(m)) for m in maps)


@settings(max_examples=40)
@given(pairs(8))
def test_no_plan_is_cheaper(pair):
    p, q = pair
    assert emd(p, q) == pytest.approx(programme(p, q), abs=1e-9)


@pytest.mark.parametrize("shape", [(32, 32), (7, 61), (40, 25)])
def test_another_library_agrees(shape):
    ot = pytest.importorskip("ot", reason="POT is not installed")
    rng = np.random.default_rng(5)
    p, q = density(rng.pareto(1, shape)), density(rng.exponential(size=shape) * (rng.random(shape) < 0.2))
    at = places(shape)
    apart = np.abs(at[:, None] - at).sum(-1) / max(shape)
    assert emd(p, q) == pytest.approx(ot.emd2(p.ravel(), q.ravel(), apart, numItermax=10**7), abs=1e-9)


def proven(supply):
    """What a flow costs, having checked that it is one and that its potential proves that none is cheaper."""
    east, south, potential = flow(supply)
    out = np.zeros_like(supply)
    out[:, :-1] += east
    out[:, 1:] -= east
    out[:-1] += south
    out[1:] -= south
    assert np.array_equal(out, supply), "what a pixel has too much of leaves it"
    for axis, moved in ((1, east), (0, south)):
        fall = -np.diff(potential, axis=axis)
        assert (np.abs(fall) <= 1).all()
        assert (fall[moved != 0] == np.sign(moved[moved != 0])).all(), "mass moves only down steps"
    cost = sum(int(np.abs(moved).sum()) for moved in (east, south))
    assert cost == int((supply * potential).sum())
    return cost


@settings(max_examples=60)
@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 10**6), st.sampled_from([1, 9, 10**9]))
def test_the_flow_carries_its_proof(rows, columns, seed, size):
    rng = np.random.default_rng(seed)
    supply = rng.integers(-size, size + 1, (rows, columns)) * (rng.random((rows, columns)) < rng.random())
    supply.ravel()[rng.integers(supply.size)] -= supply.sum()
    proven(supply)


@pytest.mark.parametrize(
    "kind", ["noise on noise", "one point against all", "a comb against its gaps", "a blur against points"]
)
def test_large_maps_are_proven_too(kind):
    rng = np.random.default_rng(11)
    side = 96
    p = q = np.ones((side, side), np.int64)
    if kind == "noise on noise":
        p, q = rng.poisson(100, (2, side, side))
    elif kind == "one point against all":
        p = np.zeros((side, side), np.int64)
        p[3, 90] = 1
    elif kind == "a comb against its gaps":
        p, q = (np.tile(np.arange(side) % 8 < 4, (side, 1)) ^ flip for flip in (False, True))
    else:
        from research.compare.gaussian_blur import heatmap

        spots = (rng.random((side, side)) < 0.01).astype(float)
        p, q = np.rint(heatmap(spots, 16) * 1e6).astype(np.int64), (spots * 10**6).astype(np.int64)
    p, q = p * int(q.sum()), q * int(p.sum())
    supply = (p - q) // np.gcd.reduce((p - q).ravel())
    assert proven(supply) > 0


@given(pairs(12), st.integers(0, 99))
def test_it_is_a_metric(pair, seed):
    p, q = pair
    r = density(np.random.default_rng(seed).random(p.shape))
    assert emd(p, p) == 0
    assert emd(p, q) == pytest.approx(emd(q, p), abs=ONE)
    assert emd(p, q) <= emd(p, r) + emd(r, q) + ONE
    assert np.array_equal(p, q) or emd(p, q) > 0
    assert emd(p, q) <= 2


@given(pairs(12))
def test_turning_both_maps_changes_nothing(pair):
    p, q = pair
    for turn in (np.flipud, np.fliplr, np.transpose):
        assert emd(turn(p), turn(q)) == pytest.approx(emd(p, q), abs=ONE)


@given(pairs(9))
def test_spreading_mass_evenly_within_pixels_never_costs_more(pair):
    """Each quarter of a pixel can go to the same quarter of where the pixel went."""
    p, q = (np.kron(map_, np.full((2, 2), 0.25)) for map_ in pair)
    assert emd(p, q) <= emd(*pair) + ONE


@given(st.integers(2, 30), st.integers(2, 30), st.data())
def test_a_point_is_as_far_as_one_walks(rows, columns, data):
    p, q = np.zeros((2, rows, columns))
    here, there = (
        data.draw(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1))) for _ in ("here", "there")
    )
    p[here], q[there] = 1, 1
    walk = (abs(here[0] - there[0]) + abs(here[1] - there[1])) / max(rows, columns)
    assert emd(p, q) == pytest.approx(walk, abs=ONE)
    assert marginal_emd(p, q) == pytest.approx(walk)


@given(pairs(33))
def test_the_cheap_bounds_are_bounds(pair):
    p, q = pair
    assert marginal_emd(p, q) <= emd(p, q) + 1e-9 <= tree_emd(p, q) + 2e-9


def test_what_is_not_two_maps_is_refused():
    with pytest.raises(InputError, match="rows and columns"):
        emd([0.5, 0.5], [0.5, 0.5])
    with pytest.raises(InputError, match="not a density"):
        emd([[2.0]], [[1.0]])
    with pytest.raises(InputError, match="lacks as much"):
        flow(np.array([[1, 0]]))
