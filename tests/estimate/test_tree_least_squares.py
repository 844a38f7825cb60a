"""Least squares on a forest, against a dense solver that knows nothing of trees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.cells import NOWHERE, Leaves, WholeDomain
from hazemap.errors import InputError
from hazemap.estimate import Measurement, consistent, nonnegative
from hazemap.estimate.region_forest import _of_cells, _of_regions, forest
from hazemap.estimate.shrinkage import shrunk
from hazemap.estimate.tree_least_squares import levels
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

TREE = Quadtree.world(depth=3)
BASE = np.sort(TREE.grid(3).ravel())


def membership(leaves: Leaves) -> np.ndarray:
    """Base cells by regions: 1 where a region owns a base cell."""
    at = leaves.locate(BASE)
    inside = np.zeros((leaves.size, len(BASE)))
    inside[at[at >= 0], np.flatnonzero(at >= 0)] = 1
    return inside


@st.composite
def antichains(draw, least: int = 0):
    """A disjoint cover of the root: cells cut at random."""
    cells, todo = [], [1]
    while todo:
        cell = todo.pop()
        level = int(TREE.level(np.array([cell], dtype=np.uint64))[0])
        if level < 3 and (level < least or draw(st.booleans())):
            todo += [int(c) for c in TREE.children(np.array([cell], dtype=np.uint64))]
        else:
            cells.append(cell)
    return Leaves(TREE, np.array(sorted(cells), dtype=np.uint64))


@st.composite
def nested(draw):
    """Some cells of any level, the root among them: every cell owns what the deeper ones leave over."""
    chosen = draw(st.sets(st.sampled_from([int(c) for c in range(2, 256) if c in range(4, 8) or c >= 16]), max_size=12))
    valid = [c for c in chosen if (c.bit_length() - 1) % 2 == 0]
    leaves = Leaves(TREE, np.array(sorted({1, *valid}), dtype=np.uint64))
    return Leaves(TREE, leaves.cells[membership(leaves).sum(1) > 0])


def measured(leaves: Leaves, rng: np.random.Generator) -> Measurement:
    return Measurement(leaves, rng.normal(10, 5, leaves.size), rng.uniform(0.5, 3, leaves.size), 3.0)


def dense(measurements, leaves):
    """Generalised least squares by pseudo-inverse over the atoms; float64 estimate and covariance."""
    design = np.concatenate([membership(m.cells) for m in measurements])
    weight = np.concatenate([1 / m.variances for m in measurements])
    numbers = np.concatenate([m.numbers for m in measurements])
    inverse = np.linalg.pinv(design.T @ (weight[:, None] * design), rcond=1e-12)
    into = membership(leaves)
    return into @ inverse @ design.T @ (weight * numbers), into @ inverse @ into.T


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(antichains(least=1), antichains(), antichains(), st.integers(0, 2**32))
def test_the_forest_gives_the_least_squares_estimate_and_its_covariance(last, first, second, seed):
    rng = np.random.default_rng(seed)
    measurements = [measured(first, rng), measured(second, rng), measured(last, rng)]
    estimate = consistent(measurements, last)
    numbers, covariance = dense(measurements, last)
    assert np.allclose(estimate.numbers, numbers)
    assert np.allclose(estimate.stddev**2, np.diag(covariance))
    weights = rng.normal(size=last.size)
    assert np.isclose(estimate.of(weights).stddev ** 2, weights @ covariance @ weights)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(nested(), st.integers(0, 2**32))
def test_regions_with_holes_are_combined_as_exactly(last, seed):
    """A coarse antichain and the whole never cut across a region with holes that lie inside its cells."""
    rng = np.random.default_rng(seed)
    root = Leaves(TREE, TREE.root)
    measurements = [measured(root, rng), measured(last, rng)]
    estimate = consistent(measurements, last)
    numbers, covariance = dense(measurements, last)
    assert np.allclose(estimate.numbers, numbers)
    assert np.allclose(estimate.stddev**2, np.diag(covariance))


def test_a_number_of_everything_stands_above_several_roots():
    """Twice measured, before and after the cells; `NOWHERE` is not among it."""
    tree, rng = Hexagons(Box(13.0, 52.3, 13.8, 52.7), 4, 6), np.random.default_rng(1)
    cells = np.concatenate([tree.root[2:], tree.children(tree.root[:2])])
    last, first, all_ = Leaves(tree, np.append(cells, NOWHERE)), Leaves(tree, tree.root), WholeDomain(tree)
    one, two = (Measurement(all_, rng.normal(90, 9, 1), rng.uniform(2, 9, 1), k) for k in (3.0, 1.0))
    asked = [one, measured(first, rng), measured(last, rng), two]
    estimate = consistent(asked, last)
    coarse = np.append(tree.root, NOWHERE)
    above = np.array([coarse == (c if c in coarse else tree.parent(np.array([c]))[0]) for c in last.cells]).T
    real = (last.cells != NOWHERE).astype(float)
    design = np.concatenate([real[None], above[:-1], np.eye(last.size), real[None]])
    weight, numbers = 1 / np.concatenate([m.variances for m in asked]), np.concatenate([m.numbers for m in asked])
    covariance = np.linalg.inv(design.T @ (weight[:, None] * design))
    solver = covariance @ design.T * weight
    assert np.allclose(estimate.numbers, solver @ numbers)
    assert np.allclose(estimate.stddev**2, np.diag(covariance))
    pulled = (real @ solver) ** 4 / weight**2 @ np.repeat([m.kurtosis for m in asked], [m.cells.size for m in asked])
    total = estimate.of(real)
    assert total.stddev**2 == pytest.approx(real @ covariance @ real)
    assert total.kurtosis == pytest.approx(pulled / total.stddev**4)
    assert consistent(asked, last, total=50.0).numbers @ real == pytest.approx(50)


@settings(max_examples=60, deadline=None)
@given(nested(), nested(), st.integers(0, 2**32))
def test_an_old_region_that_cuts_across_a_newer_one_is_left_out(old, last, seed):
    rng = np.random.default_rng(seed)
    woods = forest([old, last])
    everything = np.ones((1, len(BASE)))
    regions = np.concatenate([membership(old), membership(last), everything])[woods.row]
    for i in range(len(regions)):
        for j in range(i):
            shared = regions[i] @ regions[j]
            assert shared in (0, regions[i].sum(), regions[j].sum())
    assert set(range(old.size, old.size + last.size)) <= set(woods.row.tolist())
    estimate = consistent([measured(old, rng), measured(last, rng)], last)
    assert np.isfinite(estimate.stddev).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(antichains(), min_size=1, max_size=4), st.integers(0, 2**32))
def test_one_walk_along_the_spans_finds_the_forest_of_atoms(partitions, seed):
    """Cells in any order, some without cover, and `NOWHERE`."""
    rng = np.random.default_rng(seed)
    partitions = [Leaves(TREE, rng.permutation(np.append(p.cells, NOWHERE))[rng.integers(2) :]) for p in partitions]
    woods = [_of_cells(partitions), _of_regions(partitions)]
    found = []
    for wood in woods:
        around = np.append(wood.row, -1)[wood.parent]
        order = np.argsort(wood.row)
        assert (wood.parent < np.arange(len(wood.parent))).all()
        found.append((wood.row[order].tolist(), around[order].tolist(), wood.missing[order].tolist()))
    assert found[0] == found[1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.5, 2.0])), max_size=5),
    st.sampled_from([None, 40.0]),
    st.integers(0, 2**32),
)
def test_whole_levels_are_solved_in_closed_form(chosen, total, seed):
    rng = np.random.default_rng(seed)
    finest = Leaves.at_level(TREE, 3)
    parts = [(Leaves.at_level(TREE, level), variance) for level, variance in chosen]
    asked = [
        Measurement(cells, rng.normal(10, 5, cells.size), np.full(cells.size, variance), float(rng.normal()))
        for cells, variance in [*parts, (finest, 3.0)]
    ]
    general, closed = consistent(asked, finest, total), levels(asked, finest, total)
    assert closed is not None
    assert np.allclose(closed.numbers, general.numbers)
    assert np.allclose(closed.stddev, general.stddev)
    assert np.allclose(closed.shrunk(), shrunk(general))
    assert closed.of(np.zeros(64)) == (0, 0)
    assert np.allclose(closed.of(weights := rng.normal(size=64)), general.of(weights))


def test_only_whole_levels_are():
    finest, quarters = Leaves.at_level(TREE, 3), Leaves.at_level(TREE, 1)

    def even(*cells):
        asked = [Measurement(part, np.zeros(part.size), np.ones(part.size), 3.0) for part in cells]
        return levels(asked, finest)

    assert even(finest, quarters) is not None
    assert even(quarters) is None
    assert even(finest, Leaves(TREE, quarters.cells[:2])) is None
    assert even(finest, Leaves(TREE, quarters.cells[::-1])) is None
    assert even(finest, Leaves(TREE, np.append(TREE.children(quarters.cells[:1]), quarters.cells[1:]))) is None
    uneven = Measurement(finest, np.zeros(64), np.arange(64.0), 3.0)
    assert levels([uneven], finest) is None
    most = Leaves(TREE, finest.cells[1:])
    assert levels([Measurement(most, np.zeros(63), np.ones(63), 3.0)], most) is None


def test_the_number_of_everything_can_be_given():
    cells = Leaves.at_level(TREE, 1)
    known = consistent([Measurement(cells, np.arange(4.0), np.ones(4), 0.0)], cells, 10.0)
    assert known.numbers.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("variance", [0.0, 1e-323, 1e-300])
def test_next_to_no_noise_leaves_the_number_of_everything_as_it_is(variance):
    cells = Leaves.at_level(TREE, 1)
    wholes = [Measurement(WholeDomain(TREE), np.array([90.0]), np.full(1, each), 1e303) for each in (variance, 1.0)]
    found = consistent([*wholes, Measurement(cells, np.full(4, 25.0), np.ones(4), 0.0)], cells)
    assert found.numbers.tolist() == [22.5] * 4
    assert np.isfinite(found.stddev).all()


def test_a_cell_that_was_never_asked_for_is_refused():
    quarters = Leaves(TREE, TREE.children(TREE.root))
    half = Measurement(Leaves(TREE, quarters.cells[:2]), np.ones(2), np.ones(2), 0.0)
    with pytest.raises(InputError, match="nothing is known"):
        consistent([half], quarters)


def test_the_last_unknown_cell_is_what_the_others_leave():
    quarters = Leaves(TREE, TREE.children(TREE.root))
    whole = Measurement(Leaves(TREE, TREE.root), np.array([100.0]), np.array([4.0]), 0.0)
    three = Measurement(Leaves(TREE, quarters.cells[:3]), np.array([10.0, 20.0, 30.0]), np.ones(3), 0.0)
    estimate = consistent([whole, three], quarters)
    assert estimate.numbers.tolist() == [10, 20, 30, 40]
    assert np.allclose(estimate.stddev**2, [1, 1, 1, 7])
    assert estimate.of(np.ones(4)).stddev == pytest.approx(2)


def test_the_kurtosis_of_a_sum_is_that_of_its_noises():
    quarters = Leaves(TREE, TREE.children(TREE.root))
    estimate = consistent([Measurement(quarters, np.ones(4), np.full(4, 2.0), 3.0)], quarters)
    assert estimate.of(np.array([1.0, 0, 0, 0])).kurtosis == pytest.approx(3)
    assert estimate.of(np.ones(4)).kurtosis == pytest.approx(3 / 4)
    assert estimate.of(np.zeros(4)) == (0, 0)


def test_nowhere_is_a_region_of_its_own():
    cells = Leaves(TREE, np.append(TREE.children(TREE.root), NOWHERE))
    estimate = consistent([Measurement(cells, np.arange(5.0), np.ones(5), 0.0)], cells)
    assert estimate.numbers.tolist() == [0, 1, 2, 3, 4]
    assert nonnegative(estimate.leaves, estimate.numbers)[4] == pytest.approx(4)


def test_nowhere_may_be_asked_twice_and_hold_less_than_nobody():
    cells = Leaves(TREE, np.append(TREE.children(TREE.root), NOWHERE))
    once = Measurement(cells, np.array([1.0, 2, 3, 4, -5]), np.ones(5), 0.0)
    estimate = consistent([once, once], cells)
    assert np.allclose(nonnegative(estimate.leaves, estimate.numbers), [1, 2, 3, 4, -5])
    assert nonnegative(estimate.leaves, shrunk(estimate))[4] == -5


@settings(max_examples=40, deadline=None)
@given(antichains(least=1), antichains(), st.integers(0, 2**32))
def test_shrinking_and_the_loss_of_minus_signs_keep_the_totals(last, first, seed):
    rng = np.random.default_rng(seed)
    estimate = consistent([measured(first, rng), measured(last, rng)], last)
    calm = shrunk(estimate)
    assert calm.sum() == pytest.approx(estimate.numbers.sum())
    plain = nonnegative(estimate.leaves, calm)
    assert plain.sum() == pytest.approx(estimate.numbers.sum())
    if estimate.numbers.sum() > 0:
        assert plain.min() >= 0


def test_clamping_instead_inflates_a_sparse_map_many_times():
    """The twin of the law above: what everybody does by default."""
    rng = np.random.default_rng(5)
    cells = Leaves.at_level(TREE, 3)
    noise = rng.normal(0, 10, 64)
    estimate = consistent([Measurement(cells, 0.5 + noise - noise.mean(), np.full(64, 100.0), 0.0)], cells)
    assert np.maximum(estimate.numbers, 0).sum() > 4 * estimate.numbers.sum() > 0
    assert nonnegative(estimate.leaves, estimate.numbers).sum() == pytest.approx(estimate.numbers.sum())


def test_evenly_spread_people_are_shrunk_to_one_density():
    cells = Leaves.at_level(Quadtree(0.25, 0.25, 0.001, 3), 3)
    rng = np.random.default_rng(3)
    truth = 1000 * cells.areas / cells.areas.sum()
    whole = Measurement(Leaves(cells.tree, cells.tree.root), np.array([1000.0]), np.array([1.0]), 0.0)
    noisy = Measurement(cells, truth + rng.normal(0, 10, 64), np.full(64, 100.0), 0.0)
    estimate = consistent([whole, noisy], cells)
    assert np.abs(shrunk(estimate) - truth).sum() < 0.5 * np.abs(estimate.numbers - truth).sum()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "numbers",
    [
        (212.0, 7.105427357601002e-15, 1.4210854715202004e-14, 0.0),
        (-8.526512829121202e-14, 288.0, 8.526512829121202e-14, -5.684341886080802e-14),
        (2.1316282072803006e-14, -1.4210854715202004e-14, -2.1316282072803006e-14, 98.0),
    ],
)
def test_a_projection_ends_where_rounding_lets_a_number_back_in(numbers: tuple[float, ...]) -> None:
    """As of 400 people in one place at ε = 1e6: nearly exact numbers and zeros that least squares rounded."""
    made = nonnegative(Leaves.at_level(Quadtree.world(depth=1), 1), np.array(numbers))
    assert (made >= 0).all() and made.sum() == pytest.approx(sum(numbers))
