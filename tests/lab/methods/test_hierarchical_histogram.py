"""All levels in one vector, one weight or geometric weights, and exact least squares."""

from dataclasses import replace
from itertools import combinations, pairwise
from math import ceil, log2

import numpy as np
import pytest
from tests.algorithms.conftest import PEOPLE, TREE

from hazemap.algorithms import Flat
from hazemap.cellmap import Reading
from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import Concatenation
from hazemap.errors import InputError
from hazemap.estimate import Measurement, consistent
from hazemap.lab.methods import HB, Geometric, Hierarchical
from hazemap.lab.methods.hierarchical_histogram import rectangle_variance
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Outside

HEXAGONS = Hexagons(Box(13.2, 52.4, 13.6, 52.6), 6, 9)
EVERY = [Hierarchical(TREE, 6), Geometric(TREE, 6), Hierarchical(HEXAGONS, 2, OneVote()), Geometric(HEXAGONS, 3)]
every_method = pytest.mark.parametrize("method", EVERY, ids=lambda m: f"{type(m).__name__}-{type(m.tree).__name__}")


def asked(method, trust):
    result = run(method, trust, PureDP(1), Unrecorded())
    [(question, answer)] = result.transcript
    return result.value, question, answer


@pytest.mark.slow
@every_method
def test_one_query_asks_all_levels_and_spends_everything(method, curator):
    made, question, _ = asked(method, curator)
    assert question.share == 1 and isinstance(question.encoder, Concatenation)
    levels = [np.unique(part.cells.levels).tolist() for part in question.encoder.parts]
    assert levels == [[level] for level in range(method.level, 0 if isinstance(method, Hierarchical) else -1, -1)]
    assert set(made.cells.levels) == {method.level}
    assert question.encoder.sensitivity.l1 == sum(question.encoder.weights) * method.bounding.sensitivity.l1


@pytest.mark.slow
@every_method
def test_the_numbers_sum_to_the_people(method, curator):
    made, _, _ = asked(method, curator)
    error = made.noise.of(np.ones(made.cells.size)).stddev
    assert made.unbiased.sum() == pytest.approx(PEOPLE, abs=6 * error)
    assert made.values.sum() == pytest.approx(made.unbiased.sum()) and made.values.min() >= 0


def test_least_squares_know_a_quarter_better_than_its_cells_do(curator):
    """The error of a union shrinks from √cells · σ to about that of the few large cells that it is made of."""
    made, _, answer = asked(Hierarchical(TREE, 6), curator)
    quarter = (made.cells.cells >> np.uint64(10)) == 4
    cell = float(answer.stddev[0])
    assert made.stddev.max() < cell
    assert made.noise.of(quarter.astype(float)).stddev < cell < np.sqrt(quarter.sum()) * cell / 8


@pytest.mark.slow
def test_the_estimate_is_unbiased_and_its_error_is_what_it_says(curator):
    """400 runs of the quarter with most people: mean and spread within 6 standard errors (below 1e−8)."""
    method = Hierarchical(TREE, 3, reading=Reading.UNBIASED)
    votes = curator.table.votes(TREE, method.bounding)
    found = []
    for _ in range(400):
        made = run(method, curator, PureDP(1), Unrecorded()).value
        found.append(made.unbiased[:16].sum())
    true = made.cells.total(votes.cells, votes.weights)[:16].sum()
    said = made.noise.of((np.arange(made.cells.size) < 16).astype(float)).stddev
    assert np.mean(found) == pytest.approx(true, abs=6 * said / 20)
    assert np.std(found) == pytest.approx(said, rel=6 * np.sqrt(1.5 / 400))


def test_geometric_budgets_rise_by_the_cube_root_of_two():
    weights = Geometric(TREE, 8, grain=1000).weights
    assert np.allclose(np.array(weights[:-1]) / np.array(weights[1:]), 2 ** (1 / 3), rtol=2e-3)
    assert Geometric(TREE, 8).weights[-1] == 4


def test_geometric_budgets_know_fine_cells_better_than_even_ones(curator):
    even = run(Hierarchical(TREE, 8), curator, PureDP(1), Unrecorded()).value
    geometric = run(Geometric(TREE, 8), curator, PureDP(1), Unrecorded()).value
    assert geometric.stddev.mean() < even.stddev.mean()


@pytest.mark.parametrize("method", [Hierarchical(TREE, 6), Geometric(TREE, 6)], ids=lambda m: type(m).__name__)
def test_rows_that_lie_nowhere_are_counted_at_no_price(method, lost):
    kept = replace(method, bounding=AtMostRows(1, outside=Outside.PEOPLE))
    made, question, _ = asked(kept, lost)
    plain, _, _ = asked(method, lost)
    nowhere = made.cells.cells == NOWHERE
    assert made.unbiased[nowhere] == pytest.approx(5_000, abs=6 * made.stddev[nowhere][0])
    assert np.allclose(made.stddev[~nowhere], plain.stddev)
    assert question.encoder.size == 1 + sum(part.cells.size for part in question.encoder.parts[1:]) + 4**6


def test_one_level_alone_is_the_flat_map(curator):
    made, question, _ = asked(Hierarchical(TREE, 1), curator)
    flat = run(Flat(TREE, 1), curator, PureDP(1), Unrecorded()).value
    assert question.encoder.size == 4 and np.allclose(made.stddev, flat.stddev)


@pytest.mark.parametrize("level", [0, 9])
@pytest.mark.parametrize("method", [Hierarchical, Geometric])
def test_a_level_that_the_tree_does_not_have_is_refused(method, level, curator):
    if level == 0 and method is Geometric:
        assert run(method(TREE, level), curator, PureDP(1), Unrecorded()).value.cells.size == 1
        return
    with pytest.raises(InputError):
        run(method(TREE, level), curator, PureDP(1), Unrecorded())


def test_a_root_without_weight_is_refused():
    with pytest.raises(InputError, match="weight of the root"):
        Geometric(TREE, 3, grain=0)


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
