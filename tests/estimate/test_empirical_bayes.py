"""The most plausible map: what it keeps, what it mends, and the law of its components against integrals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimate.test_tree_levels import cut_here_and_there

from hazemap.cellmap import Reading
from hazemap.cells import NOWHERE, Leaves
from hazemap.estimate import consistent, nonnegative, roughness
from hazemap.estimate.empirical_bayes import likely
from hazemap.estimate.empirical_bayes_kernels import SCALES, START, WIDTHS, _components, _root, posterior
from hazemap.estimate.tree_least_squares import Measurement
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

TREE = Quadtree(0.5, 0.5, 2.0**-12, 6)
GRID = Leaves.at_level(TREE, 6)
HEXES = Hexagons(Box(8.4, 47.3, 8.7, 47.5), 5, 8)


def measured(cells, truth, stddev, rng):
    return Measurement(cells, truth + stddev * rng.normal(size=cells.size), np.full(cells.size, stddev**2), 0.0)


def hill(cells, people=100_000.0):
    x, y, side = TREE.square(cells.cells)
    x, y = ((z + side / 2 - start) / TREE.side for z, start in ((x, TREE.left), (y, TREE.top)))
    density = np.exp(-((x - 0.5) ** 2 + (y - 0.4) ** 2) / 0.08) * cells.areas
    return people * density / density.sum()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), stddev=st.floats(1e-3, 1e3), size=st.floats(1e-2, 1e4), hexes=st.booleans())
def test_nobody_is_negative_and_the_total_is_kept(seed, stddev, size, hexes):
    rng = np.random.default_rng(seed)
    cells = cut_here_and_there(HEXES if hexes else TREE, seed)
    truth = rng.exponential(size, cells.size) * (rng.random(cells.size) < 0.3)
    above = cells.above(2)
    inside = np.bincount(above.locate(cells.spans[0]), truth, above.size)
    asked = [measured(above, inside, 3 * stddev, rng), measured(cells, truth, stddev, rng)]
    total = float(truth.sum() + stddev)
    values = likely(asked, cells, total)
    assert (values >= 0).all()
    assert values.sum() == pytest.approx(total, rel=1e-9)


def test_what_is_known_for_sure_stays():
    rng = np.random.default_rng(0)
    truth = rng.poisson(20, GRID.size).astype(float)
    values = likely([measured(GRID, truth, 1e-4, rng)], GRID, float(truth.sum()))
    assert np.abs(values - truth).max() < 0.01


@pytest.mark.parametrize("numbers", [[0, 0, 0, 0], [7, 0, 0, 0], [7, 0, 0, 2**26]])
@pytest.mark.parametrize("variance", [0.0, 1e-300])
def test_without_noise_nobody_is_where_nobody_is(numbers, variance):
    """As at an ε of a million, whose noise is exactly 0 in floats."""
    cells = Leaves.at_level(TREE, 1)
    asked = [Measurement(cells, np.array(numbers, dtype=np.float64), np.full(4, variance), 3.0)]
    found = likely(asked, cells, float(sum(numbers)) or 1.0)
    assert found == pytest.approx(np.array(numbers) if sum(numbers) else np.full(4, 0.25), abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_where_people_are_spread_smoothly_it_has_less_than_half_the_error_of_what_was_measured(seed):
    rng, truth = np.random.default_rng(seed), hill(GRID)
    asked = [measured(GRID, truth, 10.0, rng)]
    values = likely(asked, GRID, float(truth.sum()))
    plain = nonnegative(GRID, asked[0].numbers)
    assert np.abs(values - truth).sum() < 0.5 * np.abs(plain - truth).sum()


@pytest.mark.parametrize("seed", range(5))
def test_where_nearly_all_places_are_empty_it_finds_the_few_that_are_not(seed):
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(GRID.size) < 0.01, 200.0, 0.0)
    asked = [measured(GRID, truth, 10.0, rng)]
    for levels in (1, 2, 3):
        coarse = GRID.above(levels)
        asked.append(measured(coarse, np.bincount(coarse.locate(GRID.spans[0]), truth, coarse.size), 10.0, rng))
    values = likely(asked, GRID, float(truth.sum()))
    plain = nonnegative(GRID, consistent(asked, GRID).numbers)
    assert np.abs(values - truth).sum() < 0.65 * np.abs(plain - truth).sum()
    assert np.median(values[truth == 0]) < 0.1


def test_answers_of_all_levels_are_believed_as_far_as_their_noise_allows():
    rng, truth = np.random.default_rng(3), hill(GRID)
    coarse = GRID.above(3)
    inside = np.bincount(coarse.locate(GRID.spans[0]), truth, coarse.size)
    exact = [Measurement(coarse, inside, np.full(coarse.size, 1e-6), 0.0), measured(GRID, truth, 30.0, rng)]
    values = likely(exact, GRID, float(truth.sum()))
    assert np.allclose(np.bincount(coarse.locate(GRID.spans[0]), values), inside, rtol=1e-2, atol=1)


def test_rows_that_lie_nowhere_keep_their_least_squares_number():
    cells = Leaves(TREE, np.append(GRID.cells, NOWHERE))
    rng, truth = np.random.default_rng(4), np.append(hill(GRID), 0.0)
    asked = [measured(cells, truth, 10.0, rng)]
    values = likely(asked, cells, float(truth.sum()))
    assert values[-1] == max(consistent(asked, cells).numbers[-1], 0)
    assert values[:-1].sum() == pytest.approx(truth.sum())


def test_a_total_that_is_not_positive_falls_back_to_what_is_always_possible():
    from fractions import Fraction

    from hazemap.encoders import Counts
    from hazemap.estimate import read
    from hazemap.queries.noisy_queries import Answer, Query
    from hazemap.tables.contribution_bounding import RowIsPerson

    asked = [(Query(Counts(GRID, RowIsPerson()), Fraction(1)), Answer(np.full(GRID.size, -2), np.array([3.0])))]
    made = read(asked, GRID, Reading.LIKELY)
    assert made.reading is Reading.UNBIASED
    assert made.values.sum() == pytest.approx(-2 * GRID.size)


def test_smooth_places_are_smooth_and_streets_are_rough():
    rng = np.random.default_rng(5)
    smooth, rough = hill(GRID, 1e6), rng.pareto(1.2, GRID.size) * 100
    found = [roughness([measured(GRID, truth, 5.0, rng)], GRID, 20, 1e6) for truth in (smooth, rough)]
    assert found[0] < 0.15
    assert found[1] > 0.7


def test_roughness_is_1_where_nothing_is_known_well_enough():
    rng = np.random.default_rng(6)
    assert roughness([measured(GRID, np.zeros(GRID.size), 5.0, rng)], GRID, 1e3, 1e4) == 1.0


def laws(m):
    """The components' densities on a fine grid of x ≥ 0, but for the first, which is x = 0."""
    x = np.concatenate([np.linspace(0, m, 40_001)[1:], m + np.geomspace(1e-4 * m, 300 * m, 200_000)])
    width = np.gradient(x)
    near = [np.exp(-(((x - m) / (t * m)) ** 2) / 2) for t in WIDTHS]
    near = [law / (law * width).sum() for law in near]
    return x, width, near + [np.exp(-x / (t * m)) / (t * m) for t in SCALES]


@pytest.mark.parametrize(("y", "m", "s"), [(3.0, 5.0, 4.0), (-6.0, 2.0, 3.0), (40.0, 2.0, 3.0), (9.0, 10.0, 1.0)])
def test_components_are_the_integrals_they_stand_for(y, m, s):
    likelihood, roots = np.empty(len(START)), np.empty(len(START))
    _components(y, m, s, SCALES, WIDTHS, likelihood, roots)
    x, width, densities = laws(m)
    error = np.exp(-((y - x) ** 2) / (2 * s * s))
    exact = np.array([np.exp(-y * y / (2 * s * s)), *((law * error * width).sum() for law in densities)])
    assert np.allclose(likelihood / likelihood.sum(), exact / exact.sum(), rtol=0.02, atol=1e-6)
    root = [(law * error * width * np.sqrt(x)).sum() / (law * error * width).sum() for law in densities]
    heavy = exact[1:] > 1e-3 * exact.max()
    assert np.allclose(roots[1:][heavy], np.array(root)[heavy], rtol=0.12)


def test_a_number_far_beyond_its_noise_is_believed_whatever_was_predicted():
    y, m = np.array([1000.0] * 40), np.full(40, 10.0)
    found, _ = posterior(y, m, np.full(40, 5.0), START, SCALES, WIDTHS)
    assert np.allclose(found, 1000, rtol=0.01)


def test_the_prior_learns_from_the_other_numbers():
    rng, m, s = np.random.default_rng(7), np.full(2000, 10.0), np.full(2000, 5.0)
    exact, empty = m + s * rng.normal(size=2000), s * rng.normal(size=2000)
    as_predicted, _ = posterior(exact, m, s, START, SCALES, WIDTHS)
    of_nobody, _ = posterior(empty, m, s, START, SCALES, WIDTHS)
    assert np.abs(as_predicted - 10).mean() < 1
    assert of_nobody.mean() < 0.5


def test_a_number_far_below_0_beside_next_to_no_noise_is_nothing():
    """Its mean and what the cut at 0 adds to it cancel, and nothing is divided by."""
    assert 0 <= _root(-1e8, 1e-9) < 1e-6
