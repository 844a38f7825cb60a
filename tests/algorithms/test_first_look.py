"""Whether the first answers of a run say that the rest would buy nothing."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.algorithms.count_queries import with_nowhere
from hazemap.algorithms.first_look import CHANCE, LOOK, judged
from hazemap.algorithms.private_bounding_box import LocateBox, PrivateBoundingBox
from hazemap.cells import Leaves, WholeDomain
from hazemap.encoders import Counts
from hazemap.privacy.budget import PureDP
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Outside
from hazemap.trust.curator import Curator

TREE = Quadtree.world(depth=4)
RULE = AtMostRows(1, Outside.PEOPLE)
GRID = with_nowhere(Leaves.at_level(TREE, 2), RULE)
RUNS = 2_000


def looks(luck: np.random.Generator, inside: int, outside: int, spread: bool, laplace: bool):
    """The two answers with which a map begins at ε = 1: a total, and 16 cells with everybody else beside them."""

    def answer(query: Query, true: np.ndarray, scale: float) -> tuple[Query, Answer]:
        noise = luck.laplace(0, scale, len(true)) if laplace else luck.normal(0, scale * 2**0.5, len(true))
        return query, Answer(
            np.rint(true + noise).astype(np.int64), np.array([scale * 2**0.5]), 3.0 if laplace else 0.0
        )

    cells = np.full(16, inside / 16) if spread else np.eye(16)[0] * inside
    total = Query(Counts(WholeDomain(TREE), RULE), LOOK / 20)
    grid = Query(Counts(GRID, RULE), LOOK / 2)
    return [answer(total, np.array([inside]), 200.0), answer(grid, np.append(cells, outside), 12.5)]


@pytest.mark.parametrize("laplace", [True, False])
def test_a_map_of_nobody_stops_but_for_one_run_in_twenty(laplace):
    """2,000 runs, of which fewer than 100 go on in the mean: more than 150 would be one chance in 10⁶."""
    luck = np.random.default_rng(3)
    found = [judged(None, looks(luck, 0, 3_000, True, laplace)) for _ in range(RUNS)]
    assert sum(each is None for each in found) <= RUNS * CHANCE + 50
    stops = [each for each in found if each]
    assert {each.why for each in stops} == {"outside"}
    assert all("about 2,9" in each.found or "about 3,0" in each.found for each in stops[:50])


@pytest.mark.parametrize(("inside", "spread"), [(450, True), (250, False)])
@pytest.mark.parametrize("laplace", [True, False])
def test_a_map_of_somebody_goes_on_though_most_people_are_outside(inside, spread, laplace):
    """With twice what a trial needs fewer than 1 run of 80 stops: more than 55 of 2,000 would be one chance in 10⁶."""
    luck = np.random.default_rng(4)
    stops = [judged(None, looks(luck, inside, 100_000, spread, laplace)) for _ in range(RUNS)]
    assert sum(each is not None for each in stops) <= 55


def test_a_look_that_sees_too_little_decides_nothing():
    """A count with a thousandth of the budget would miss thousands of people; one with a fiftieth misses hundreds."""
    prices = Curator(None).prices(PureDP(1))
    for share, stops in ((1_000, False), (50, True)):
        query = Query(Counts(WholeDomain(TREE), RULE), Fraction(1, share))
        found = judged(
            None, [(query, Answer(np.zeros(1, dtype=np.int64), np.array([share * 2**0.5]), 3.0))], None, prices
        )
        assert (found is not None) == stops


def test_nobody_anywhere_is_told_from_everybody_outside():
    assert judged(None, looks(np.random.default_rng(5), 0, 0, True, True)).why == "nobody"
    assert judged(None, []) is None


def test_a_box_is_found_or_the_run_stops():
    tiles, method = LocateBox().tiles, PrivateBoundingBox(Adaptive(Quadtree.world(depth=0)))
    coarse = Query(Counts(Leaves.at_level(tiles, 8), AtMostRows(1)), LOOK / 5)
    fine = Query(Counts(Leaves(tiles, tiles.children(tiles.root)), AtMostRows(1)), LOOK / 5)
    total = Query(Counts(WholeDomain(TREE), RULE), LOOK / 20)
    zeros = Answer(np.zeros(1 << 16, dtype=np.int64), np.array([70.7]), 3.0)
    four = Answer(np.full(4, 900), np.array([70.7]), 3.0)
    many = Answer(np.array([90_000]), np.array([282.8]), 3.0)
    stop = judged(method, [(coarse, zeros), (total, many)])
    assert stop.why == "box" and "shows 750 people or more" in stop.found
    assert judged(method, [(coarse, zeros), (fine, four), (total, many)]) is None


def test_a_look_is_judged_by_its_answers_alone_and_in_people():
    luck = np.random.default_rng(6)
    answers = looks(luck, 5, 3_000, True, True)
    assert judged(None, answers) == judged(object(), list(answers))
    weighed = AtMostRows(1, Outside.PEOPLE)
    assert weighed.unit == 1
