"""Estimates and the people outside of a picture, in words and as numbers."""

from dataclasses import replace

import numpy as np
import pytest

from hazemap.cellmap import CellMap
from hazemap.cells import NOWHERE, Leaves
from hazemap.draw import MapExtent, encode, shown_part
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.releases import Estimate
from hazemap.releases.estimates import PeopleOutside, estimate
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

from .conftest import BERLIN, KURTOSIS, STDDEV, flat, nested, released


def test_an_estimate_says_what_it_knows_in_one_line():
    found = Estimate(1234.5, 1234.2, 1234.8, 0.9, "rows per km²", 1234.6, 0.123)
    assert str(found) == "1,234.50 rows per km² (90 % interval 1,234.20 … 1,234.80)"
    assert found.said_of_noise == "The unbiased estimate is 1,234.60, its standard error 0.12."


def test_an_exact_number_has_no_decimals():
    assert str(Estimate(3, 3, 3, 0.95, "people", 3, 0)).startswith("3 people")


@pytest.mark.parametrize("best_guess", [2.9, 4.1])
def test_no_estimate_can_be_made_of_a_best_guess_outside_its_own_interval(best_guess):
    with pytest.raises(InputError, match="lies outside"):
        Estimate(best_guess, 3, 4, 0.95, "people", 3.5, 1)


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
    assert sure.low < one.low < one.best_guess < one.high < sure.high
    total = release.total()
    assert total.high - total.unbiased == pytest.approx(total.unbiased - total.low)


def test_the_interval_of_one_cell_has_the_width_of_its_noise_in_whole_people(release):
    cell = release.count("root-0123")
    assert cell.stddev == pytest.approx(STDDEV)
    assert cell.high - cell.unbiased == pytest.approx(np.ceil(STDDEV * reach(0.95, KURTOSIS)))


def test_intervals_come_from_the_unbiased_numbers_and_reach_to_the_best_guess(release):
    total = release.total()
    assert total.unbiased == pytest.approx(release.map.unbiased.sum())
    assert total.best_guess == pytest.approx(release.map.values.sum())
    margin = np.ceil(reach(0.95, release.map.noise.of(np.ones(release.cells.size)).kurtosis) * total.stddev)
    assert (total.low, total.high) == pytest.approx((total.unbiased - margin, total.unbiased + margin))
    far = replace(release, map=replace(release.map, values=0.9 * release.map.unbiased)).total()
    assert far.low == far.best_guess < total.low and far.high == total.high, "longer where the best guess is beyond"


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


HALF = Box(13.2, 52.4, 13.4, 52.6)


def with_outside(leaves: Leaves) -> Leaves:
    return Leaves(leaves.tree, np.append(leaves.cells, NOWHERE))


def hexagons() -> Leaves:
    return Leaves.at_level(Hexagons(BERLIN, 5, 8), 2)


@pytest.mark.parametrize("leaves", [flat(), nested(), hexagons()], ids=["squares", "nested", "hexagons"])
@pytest.mark.parametrize("asked", [False, True])
def test_inside_and_outside_a_picture_together_are_all_that_were_counted(leaves, asked):
    release = released(with_outside(leaves) if asked else leaves)
    outside = PeopleOutside.of(release, HALF)
    everybody = release.total().unbiased + (release.nowhere.unbiased if asked else 0)
    assert outside.beyond.unbiased + release.count(HALF).unbiased == pytest.approx(everybody)
    assert outside.beyond.low < outside.beyond.best_guess < outside.beyond.high
    assert (outside.nowhere is None) != asked


def test_fault_9_a_picture_shows_all_of_the_map_unless_it_is_asked_for_less():
    """Fault 9: a picture cropped even a declared box."""
    leaves = flat()
    cellmap = released(leaves).map
    alone = np.zeros(leaves.size)
    alone[100:104] = 1e6
    crowded = replace(cellmap, values=alone, unbiased=alone)
    west, south, east, north = leaves.tree.bounds(leaves.tree.root)
    assert shown_part(crowded) is None
    assert shown_part(crowded, box=Box(west[0], south[0], east[0], north[0])) is None
    part = shown_part(crowded, MapExtent.PEOPLE)
    assert part.east - part.west < 0.5 * (east - west)[0]


def test_a_picture_beside_the_map_leaves_everybody_out():
    release = released(with_outside(flat()))
    everybody = release.total().unbiased + release.nowhere.unbiased
    assert release.beyond(Box(0, 0, 1, 1)).unbiased == pytest.approx(everybody)


def test_words_say_what_is_known_and_what_is_not():
    asked, dropped = released(with_outside(flat())), released(flat())
    number = str(asked.nowhere)
    assert str(PeopleOutside.of(asked)) == f"{number} lie outside the map."
    assert str(PeopleOutside.of(dropped)) == "People outside the map were not counted."
    beyond = str(asked.beyond(HALF))
    assert str(PeopleOutside.of(asked, HALF)).startswith(f"{beyond} lie outside this picture; of them {number} outside")
    assert str(PeopleOutside.of(dropped, HALF)).endswith(
        "lie on the map, outside this picture; people outside the map were not counted."
    )
    below = replace(asked.nowhere, best_guess=-5.0, low=-5.0)
    assert "below 0 by noise alone" in str(PeopleOutside("people", below))


@pytest.mark.parametrize("box", [None, HALF], ids=["all of the map", "a part"])
def test_the_picture_says_it_too(box):
    release = released(with_outside(flat()))
    figure = release.plot(box=box, width=6)
    [note] = [text for text in figure.texts if text.get_gid() == "note"]
    assert note.get_label() == str(PeopleOutside.of(release, box))
    assert encode(figure)


def test_a_picture_across_the_antimeridian_is_two_parts():
    tree = Quadtree.world(6)
    cellmap = released(Leaves.at_level(tree, 4)).map
    ends = shown_part(cellmap, box=Box(170, -10, 180, 60))  # a tower, widened beyond 180°
    assert ends.geom_type == "MultiPolygon" and ends.bounds[0] == -180 and ends.bounds[2] == 180
