"""An adaptive map that asks for no more numbers than a device is to send."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap.algorithms import Adaptive
from hazemap.cells import Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Outside
from hazemap.trust.curator import Curator

BOX = Box(13.2, 52.4, 13.6, 52.6)
TREE = Quadtree.around(BOX, 9)


@pytest.fixture(scope="module")
def town():
    rng = np.random.default_rng(7)
    spot = np.clip(rng.choice([0.3, 0.8], 9_000)[:, None] + rng.normal(0, 0.05, (9_000, 2)), 0, 1 - 1e-9)
    return MemoryTable(np.arange(9_000), {"lon": 13.2 + 0.4 * spot[:, 0], "lat": 52.4 + 0.2 * spot[:, 1]})


def numbers(result):
    return sum(exchange.answer.sums.size for exchange in result.transcript)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [AtMostRows(1), AtMostRows(2, outside=Outside.PEOPLE), OneVote(64)], ids=str)
@pytest.mark.parametrize("most", [330, 500, 1_000, 3_000])
def test_no_more_numbers_are_asked_for_than_allowed(town, rule, most):
    method = Adaptive.for_devices(TREE, rule, most)
    result = run(method, Curator(town), PureDP(20), Unrecorded())
    assert 0.8 * most < numbers(result) <= most  # and most of them are used


@pytest.mark.slow
@pytest.mark.parametrize("deciding", range(1, 6))
@pytest.mark.parametrize("coarser", range(4))
def test_the_limit_holds_for_any_number_of_rounds(town, deciding, coarser):
    tree = Hexagons(BOX, 6, 9)
    shares = (Fraction(1, 100),) * deciding
    above = tuple((1 + i, Fraction(1, 50)) for i in range(coarser))
    first = Leaves.at_level(tree, 0).size
    for most in (first * (deciding + 1 + coarser), 10 * first * deciding):
        method = Adaptive(tree, AtMostRows(1), first, shares, (3,) * deciding, above, most_numbers=most)
        assert numbers(run(method, Curator(town), PureDP(50), Unrecorded())) <= most


def test_a_limit_that_the_first_cells_alone_would_pass_is_refused(town):
    method = Adaptive.for_devices(TREE, most_numbers=319)
    with pytest.raises(InputError, match="64 first cells need 320"):
        run(method, Curator(town), PureDP(1), Unrecorded())


def test_a_limit_that_nobody_reaches_changes_nothing(town):
    cohort = Cohort(9_000, 3_000, Fraction(0), Fraction(0))
    results = [
        run(
            Adaptive.for_devices(TREE, AtMostRows(1), most),
            SimulatedSecureAggregation(town, cohort),
            PureDP(10**6),
            Unrecorded(),
        )
        for most in (None, 10**9)
    ]
    assert np.array_equal(*(np.sort(result.value.cells.cells) for result in results))
