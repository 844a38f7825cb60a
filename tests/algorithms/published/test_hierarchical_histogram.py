"""All levels in one vector, one weight or geometric weights, and exact least squares."""

from dataclasses import replace

import numpy as np
import pytest
from tests.algorithms.conftest import PEOPLE, TREE

from hazemap.algorithms import Flat, Geometric, Hierarchical
from hazemap.cellmap import Reading
from hazemap.cells import NOWHERE
from hazemap.encoders import Concatenation
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
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
