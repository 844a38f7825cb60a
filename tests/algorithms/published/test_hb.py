"""A hierarchy of few levels, chosen by a rule that looks at no data."""

from itertools import combinations, pairwise
from math import ceil, log2

import numpy as np
import pytest
from tests.algorithms.conftest import TREE

from hazemap.algorithms import HB, Hierarchical
from hazemap.algorithms.published.hierarchical_histogram import rectangle_variance
from hazemap.cellmap import Reading
from hazemap.cells import Leaves
from hazemap.errors import InputError
from hazemap.estimate import Measurement, consistent
from hazemap.privacy.budget import PureDP
from hazemap.session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Outside


@pytest.mark.parametrize("level", range(1, 13))
def test_the_branching_is_that_of_the_published_rule(level):
    side = 2**level
    rule = {b: b * (side - 1) * ceil(round(level / log2(b), 9)) ** 2 for b in (2**j for j in range(1, level + 1))}
    levels = HB.published(Quadtree.world(depth=level), level).levels
    steps = {fine - coarse for coarse, fine in pairwise(levels)} or {level}
    assert levels[-1] == level and len(steps) == 1
    assert rule[2 ** steps.pop()] == min(rule.values())


@pytest.mark.parametrize("levels", [(3,), (1, 3), (2, 3), (0, 1, 2, 3)])
def test_the_variance_of_rectangles_is_that_of_least_squares(levels):
    """Every rectangle of 8 × 8 cells, one by one, with the noise that the estimate states for it."""
    tree = Quadtree.world(depth=3)
    finest = Leaves.at_level(tree, 3)
    parts = [Leaves.at_level(tree, level) for level in levels]
    noise = 2.0 * len(levels) ** 2
    estimate = consistent([Measurement(p, np.zeros(p.size), np.full(p.size, noise), 3.0) for p in parts], finest)
    at = (tree.grid(3) - 64).astype(int)
    sides = list(combinations(range(9), 2))
    found = []
    for north, south in sides:
        for west, east in sides:
            weights = np.zeros(64)
            weights[at[north:south, west:east].ravel()] = 1
            found.append(estimate.of(weights).stddev ** 2)
    assert rectangle_variance(levels) == pytest.approx(np.mean(found))


def test_no_other_levels_have_less_variance():
    tree = Quadtree.world(depth=6)
    best = rectangle_variance(HB.least(tree, 6).levels)
    others = [(*chosen, 6) for number in range(6) for chosen in combinations(range(1, 6), number)]
    assert best == min(rectangle_variance(levels) for levels in others)
    assert best <= rectangle_variance(HB.published(tree, 6).levels)


def test_hexagons_have_the_rule_too():
    tree = Hexagons(Box(13.2, 52.4, 13.6, 52.6), 5, 9)
    assert HB.published(tree, 4).levels == (2, 4)


def test_all_levels_are_a_hierarchy_of_quarters(curator):
    rule = AtMostRows(1)
    ours = run(HB(TREE, (1, 2, 3, 4), rule), curator, PureDP(1), Unrecorded())
    theirs = run(Hierarchical(TREE, 4, rule), curator, PureDP(1), Unrecorded())
    assert np.allclose(ours.value.stddev, theirs.value.stddev)
    assert ours.transcript[0].question == theirs.transcript[0].question


def test_a_hierarchy_counts_people_and_its_published_map_is_unbiased(lost):
    method = HB.published(TREE, 6, AtMostRows(1, outside=Outside.PEOPLE), Reading.UNBIASED)
    made = run(method, lost, PureDP(1), Unrecorded()).value
    assert np.array_equal(made.values, made.unbiased)
    people = np.where(made.places, 1.0, 0.0)
    assert (people * made.unbiased).sum() == pytest.approx(50_000, abs=6 * made.noise.of(people).stddev)
    assert made.unbiased[~made.places] == pytest.approx(5_000, abs=6 * made.stddev[-1])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: HB(TREE, ()),
        lambda: HB(TREE, (3, 2)),
        lambda: HB(TREE, (-1, 3)),
        lambda: HB.least(TREE, -1),
        lambda: next(HB.published(TREE, 9).rounds(None)),
        lambda: HB.least(Hexagons(Box(13.2, 52.4, 13.6, 52.6), 5, 9), 2),
    ],
)
def test_what_is_no_hierarchy_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()
