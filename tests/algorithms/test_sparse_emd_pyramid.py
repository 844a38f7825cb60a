"""Sparse maps under the earth mover's distance: what is asked, what is kept, and how near the map is."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from hazemap.algorithms import PublishedPyramid, Pyramid
from hazemap.algorithms.emd_pyramids import share
from hazemap.cells import NOWHERE, Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.lab.compare.density_metrics import density
from hazemap.lab.compare.earth_movers_distance import emd
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Outside
from hazemap.trust.curator import Curator

BERLIN = Box(13.2, 52.4, 13.6, 52.6)
TREE, HEXAGONS = Quadtree.around(BERLIN, 6), Hexagons(BERLIN, 5, 8)


def table(people=200, seed=3):
    rng = np.random.default_rng(seed)
    home = rng.choice(8, people)
    spots = np.random.default_rng(1).uniform(0.1, 0.9, (2, 8))
    x, y = np.clip(spots[:, home] + rng.normal(0, 0.02, (2, people)), 0, 0.999)
    west, south, east, north = (float(edge[0]) for edge in TREE.bounds(TREE.root))
    return MemoryTable(np.arange(people), {"lon": west + x * (east - west), "lat": south + y * (north - south)})


def released(method, epsilon, rows=None, seed=b"pyramid"):
    return run(method, Curator(rows or table(), Stream.fixed(seed)), PureDP(epsilon), Unrecorded())


def truth(rows, rule, cells):
    votes = rows.votes(cells.tree, rule)
    return cells.total(votes.cells, votes.weights) / rule.unit


def picture(cells, values):
    grid = TREE.grid(TREE.depth)
    first, last = cells.spans
    return (values / ((last - first).astype(float) + 1))[cells.locate(grid.ravel())].reshape(grid.shape)


@pytest.mark.parametrize("rule", [OneVote(), AtMostRows(1), OneVote(outside=Outside.PEOPLE)], ids=str)
@pytest.mark.parametrize("kind", [Pyramid, PublishedPyramid])
@pytest.mark.parametrize("epsilon", ["0.1", 24])
def test_the_shares_are_spent_to_the_last_and_every_round_tiles(kind, rule, epsilon):
    result = released(kind(TREE, rule), epsilon)
    assert sum(question.share for question, _ in result.transcript) == 1
    for question, _ in result.transcript:
        leaves = question.encoder.cells
        assert (leaves.locate(TREE.grid(TREE.depth).ravel()) >= 0).all()
        assert not leaves.nested
    assert leaves == result.value.cells
    assert (NOWHERE in leaves.cells) == rule.outside.asked


@pytest.mark.parametrize("kind", [Pyramid, PublishedPyramid])
def test_hexagons_are_cut_like_squares(kind):
    made = released(kind(HEXAGONS, AtMostRows(1)), 24).value
    assert truth(table(), AtMostRows(1), made.cells).sum() == 200
    assert made.values.sum() == pytest.approx(200, rel=0.1)
    assert made.cells.levels.max() == HEXAGONS.depth


def test_the_last_cells_are_new_to_the_last_round_so_that_its_noise_is_fresh():
    for seed in range(20):  # at so small an ε nothing stands out
        questions = [question for question, _ in released(Pyramid(TREE), "0.01", seed=bytes([seed])).transcript]
        last, before = questions[-1].encoder.cells, questions[-2].encoder.cells
        assert len(questions) < TREE.depth
        assert set(last.cells.tolist()) != set(before.cells.tolist())


def test_a_cell_is_cut_if_it_stands_out_and_is_one_of_the_fullest():
    result = released(Pyramid(TREE, kept=3, above=Fraction(5, 2)), 5)
    prices = Curator(table()).prices(PureDP(5))
    for turn, ((question, answer), (following, _)) in enumerate(pairwise(result.transcript)):
        asked, then = question.encoder.cells, following.encoder.cells.cells
        cut = ~np.isin(asked.cells, then)
        assert np.isin(TREE.children(asked.cells[cut]), then).all()
        deepest = asked.levels == 2 + turn
        limit = 2.5 * prices.stddev(question.encoder, share(turn + 1, turn + 1 == TREE.depth - 2))
        out = answer.sums[deepest & ~cut]
        assert (cut <= deepest).all() and 1 <= cut.sum() <= 3
        assert (answer.sums[cut] > limit).all() or (cut.sum() == 1 and turn == len(result.transcript) - 2)
        assert (out <= limit).all() or (cut.sum() == 3 and out.max() <= answer.sums[cut].min())


def test_published_a_level_costs_one_over_root_two_of_the_level_before():
    for before, after in pairwise(PublishedPyramid(TREE).shares):
        assert float(after / before) == pytest.approx(0.5**0.5, abs=1e-5)
    for turn in range(4):
        assert float(share(turn + 1, False) / share(turn, False)) == pytest.approx(0.5**0.5, abs=1e-4)


def test_published_the_children_of_the_fullest_cells_are_asked_for():
    sizes = [question.encoder.size for question, _ in released(PublishedPyramid(TREE), 1).transcript]
    assert sizes == [16, 64, *(64 + 60 * more for more in range(1, TREE.depth - 2))]


def test_published_with_next_to_no_noise_the_kept_cells_are_the_fullest_and_exact():
    rows = table()
    made = released(PublishedPyramid(TREE, AtMostRows(1), kept=4096), 48, rows).value
    true = truth(rows, AtMostRows(1), made.cells)
    assert made.cells.size == 4096
    assert np.abs(made.values - true).sum() == 0
    assert np.abs(made.unbiased - true).max() == 0


def test_published_the_picture_is_the_nearest_by_a_linear_programme():
    result = released(PublishedPyramid(TREE, kept=5), 1)
    assert result.value.values.sum() > 0
    assert objective(result, result.value) == pytest.approx(by_linear_programme(result), rel=1e-9)


def problem(result):
    """Every cell asked at its own level, what is wanted of it, its price, and which leaves are in it."""
    leaves, depth = result.value.cells, TREE.depth
    spans = leaves.spans
    for turn, (question, answer) in enumerate(result.transcript):
        asked, level = question.encoder.cells, 2 - 1 + turn  # with kept = 5 the first level has 4 cells
        deepest = np.flatnonzero(asked.levels == level)
        kept = deepest[np.argsort(-answer.sums[deepest], kind="stable")[:5]]
        for at in deepest:
            first, last = asked.spans[0][at], asked.spans[1][at]
            inside = (spans[0] >= first) & (spans[1] <= last)
            if at in kept:
                yield answer.sums[at] / OneVote().unit, 2.0**-level, inside
            else:
                yield 0.0, 2.0 ** (1 - level) - 2.0**-depth, inside


def objective(result, made):
    return sum(price * abs(wanted - made.values[inside].sum()) for wanted, price, inside in problem(result))


def by_linear_programme(result):
    from scipy.optimize import linprog

    rows = list(problem(result))
    inside = np.array([row[2] for row in rows], float)
    prices = np.array([row[1] for row in rows])
    eye = np.eye(len(rows))
    costs = np.concatenate([np.zeros(inside.shape[1]), prices, prices])
    return linprog(costs, A_eq=np.hstack([inside, eye, -eye]), b_eq=[row[0] for row in rows], method="highs").fun


@pytest.mark.slow
def test_the_map_is_near_the_truth_and_nearer_than_as_published():
    rows = table()
    true = density(picture(Leaves.at_level(TREE, 6), truth(rows, OneVote(), Leaves.at_level(TREE, 6))))
    errors = {}
    for kind in (Pyramid, PublishedPyramid):
        for epsilon in (1, 10):
            made = [released(kind(TREE), epsilon, rows, bytes([seed])).value for seed in range(5)]
            errors[kind, epsilon] = np.mean([emd(true, density(picture(each.cells, each.values))) for each in made])
    assert errors[Pyramid, 10] < errors[Pyramid, 1] < errors[PublishedPyramid, 1] < 0.2
    assert errors[Pyramid, 10] < errors[PublishedPyramid, 10] < 0.06


@pytest.mark.slow
def test_the_picture_has_no_minus_signs_and_an_unbiased_total():
    rows, totals = table(), []
    for seed in range(100):
        made = released(Pyramid(TREE, AtMostRows(1)), 1, rows, bytes([seed])).value
        assert (made.values >= 0).all()
        totals.append(made.values.sum())
    spread = np.std(totals) / len(totals) ** 0.5
    assert abs(np.mean(totals) - 200) < 5 * spread  # a normal mean is so far off once in 1.7 million times
    assert spread < 2


@pytest.mark.slow
def test_numbers_are_unbiased_whatever_was_cut():
    rows, apart = table(), []
    for seed in range(200):
        made = released(Pyramid(TREE, AtMostRows(1)), 1, rows, bytes([seed])).value
        deep = made.cells.levels == made.cells.levels.max()
        wrong = (made.unbiased - truth(rows, OneVote(), made.cells)) / made.stddev
        apart.append([part.sum() / len(part) ** 0.5 for part in (wrong[deep], wrong[~deep])])
    assert (np.abs(np.mean(apart, axis=0)) < 5 / len(apart) ** 0.5).all()  # once in 800,000 times it is more


def test_devices_answer_too():
    people = table(3_000)
    trust = SimulatedSecureAggregation(people, Cohort(1_000, 1_000, corrupt=Fraction(0)))
    for kind in (Pyramid, PublishedPyramid):
        made = run(kind(TREE), trust, PureDP(5), Unrecorded()).value
        assert made.values.sum() > 0


def test_what_cannot_be_cut_is_refused():
    with pytest.raises(InputError, match="one cell"):
        Pyramid(TREE, kept=0)
    with pytest.raises(InputError, match="1 cell"):
        PublishedPyramid(TREE, kept=0)


def test_a_tree_without_levels_is_asked_once():
    world = Quadtree.world(depth=0)
    for kind in (Pyramid, PublishedPyramid):
        result = released(kind(world), 5)
        assert len(result.transcript) == 1
        assert result.value.unbiased[0] == pytest.approx(200, abs=5)
