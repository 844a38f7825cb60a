"""Estimates and their intervals."""

import numpy as np
import pytest

from hazemap.cellmap import CellMap
from hazemap.cells import Leaves
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.releases import Estimate
from hazemap.releases.estimates import estimate
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

from .conftest import KURTOSIS, STDDEV


def test_an_estimate_says_what_it_knows_in_one_line():
    line = str(Estimate(1234.5, 0.123, 1234.2, 1234.8, 0.9, 0.0, 0.0, "rows per km²"))
    assert line == "1,234.50 ± 0.12 rows per km² (90 % interval 1,234.20 … 1,234.80)"


def test_an_exact_number_has_no_decimals():
    assert str(Estimate(3, 0, 3, 3, 0.95, 3, 0, "people")).startswith("3 ± 0 people")


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95, float("nan")])
def test_a_confidence_outside_0_and_1_is_refused(release, confidence):
    with pytest.raises(InputError, match="between 0 and 1"):
        release.total(confidence)


def test_gaussian_noise_reaches_as_far_as_the_normal_table_says():
    assert reach(0.95, 0) == pytest.approx(1.959964)
    assert reach(0.99, 0) == pytest.approx(2.575829)


def test_no_interval_is_wider_than_chebyshev_needs():
    assert reach(0.95, 1e6) == pytest.approx(20**0.5)
    assert reach(0.5, 1e6) == 0  # nearly all of such noise is exactly 0


def test_the_width_of_an_interval_grows_with_confidence_and_cells(release):
    one, many = (release.count(Box(13.2, 52.4, east, 52.6)) for east in (13.3, 13.6))
    assert one.stddev < many.stddev
    sure = release.count(Box(13.2, 52.4, 13.3, 52.6), confidence=0.99)
    assert sure.low < one.low < one.value < one.high < sure.high
    total = release.total()
    assert total.high - total.value == pytest.approx(total.value - total.low)


def test_the_interval_of_one_cell_has_the_width_of_its_noise_in_whole_people(release):
    cell = release.count("root-0123")
    assert cell.stddev == pytest.approx(STDDEV)
    assert cell.high - cell.value == pytest.approx(np.ceil(STDDEV * reach(0.95, KURTOSIS)))


def test_intervals_come_from_the_unbiased_numbers_and_never_from_the_best_guess(release):
    total = release.total()
    assert total.value == pytest.approx(release.map.unbiased.sum())
    assert total.best == pytest.approx(release.map.values.sum())
    assert total.best != pytest.approx(total.value)
    assert (total.low + total.high) / 2 == pytest.approx(total.value)


DRAWS = 40_000


def covered(cells: int, kurtosis: float) -> float:
    """How often intervals hold the truth 0 of a sum of cells under Laplace noise of many people."""
    rng = np.random.default_rng(5)
    tree = Quadtree.world(depth=3)
    leaves = Leaves(tree, tree.children(tree.root)[:cells])
    spread = np.full(cells, 1000 * np.sqrt(2.0))
    template = CellMap.independent(leaves, np.zeros(cells), spread, kurtosis)
    half = estimate(template, np.ones(cells), "people", 0.95).high
    return float(np.mean(np.abs(rng.laplace(0, 1000, (DRAWS, cells)).sum(axis=1)) <= half))


@pytest.mark.parametrize("cells", [1, 2, 4])
def test_95_percent_intervals_hold_the_truth_95_percent_of_the_time(cells):
    """5.3 standard errors of the draws are 0.58 %: the chance of a false alarm is below 1e-6."""
    assert covered(cells, kurtosis=3.0) == pytest.approx(0.95, abs=0.006)


def test_intervals_that_take_laplace_noise_for_gaussian_are_found_too_narrow():
    """The twin: ±1.96 σ holds 93.8 %; 5.3 standard errors are 0.58 %, so it passes with chance below 1e-6."""
    assert covered(1, kurtosis=0.0) < 0.945
