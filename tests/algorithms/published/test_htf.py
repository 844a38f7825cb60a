"""HTF with every constant of the paper: its height, its budgets, its thresholds, its leaves."""

from dataclasses import replace
from fractions import Fraction
from math import floor, log2, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.conftest import BOX, PEOPLE, TREE, people

from hazemap.algorithms import HTF, PrivateBoundingBox
from hazemap.algorithms.published.htf import thresholds
from hazemap.cellmap import Reading
from hazemap.cells import NOWHERE, Redrawn
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, Unanswerable
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_disclosure import Learned
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.queries.noisy_queries import Choice, Measure, Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Outside
from hazemap.trust.curator import Curator

FINE = Quadtree.around(BOX, 9)


class Once:
    """A table whose rows are read once for each rule: a run asks a hundred questions."""

    def __init__(self, table: MemoryTable) -> None:
        self.table, self.known = table, {}

    def votes(self, tree, bounding):
        """Everybody's votes."""
        if isinstance(tree, Redrawn):
            return self.votes(tree.base, bounding).redrawn(tree)
        if (tree, bounding) not in self.known:
            self.known[tree, bounding] = self.table.votes(tree, bounding)
        return self.known[tree, bounding]


TOWN = Once(people())


@pytest.fixture
def curator() -> Curator:
    """A curator of the town."""
    return Curator(TOWN, Stream.fixed(b"town"))


QUICK = replace(HTF.published(FINE, "1"), stop_at=300)


def ended(method, trust, budget):
    """One run that nobody pays for."""
    return run(method, trust, budget, Unrecorded())


def test_the_constants_are_the_papers():
    method = HTF.published(FINE, "0.1")
    assert (method.turns, method.least_pixels, method.stop_at, method.people_a_cell) == (3, 5, 100, 10)
    assert method.share_of_number * Fraction("0.1") == Fraction("1e-4")
    assert method.share_a_level * Fraction("0.1") == Fraction("1e-3")
    assert HTF.published(FINE, "0.5", level="5e-4").share_a_level == Fraction("5e-4") / Fraction("0.5")
    assert method.reading is Reading.UNBIASED


@pytest.mark.parametrize(("epsilon", "height"), [("0.1", 15), ("0.3", 16), ("0.5", 17)])
def test_the_height_is_the_papers_on_its_map_of_3_5_million_people(epsilon, height):
    method = HTF.published(Quadtree.around(BOX, 10), epsilon)
    assert method.allotment(3.5e6, float(epsilon), 1 - method.share_of_number).height == height


def test_counts_cost_what_equation_22_says_and_cuts_what_a_level_may():
    method = HTF.published(Quadtree.around(BOX, 10), "0.1")
    made = method.allotment(3.5e6, 0.1, 1 - method.share_of_number)
    assert made.cutting == (Fraction(1, 100),) * 15
    data = float(made.left) - 0.15
    geometric = [2 ** ((15 - i) / 3) * data * (2 ** (1 / 3) - 1) / (2 ** (16 / 3) - 1) for i in range(15, 0, -1)]
    assert np.allclose([float(share) for share in made.deciding], geometric, rtol=1e-9)


@given(st.floats(-1e6, 1e10), st.floats(0.001, 20), st.fractions("1/1000000", "1/2"), st.fractions(0, "9/10"))
def test_something_is_left_for_leaves_whatever_number_noise_makes(number, epsilon, share, level):
    method = HTF(FINE, share_of_number=share, share_a_level=level)
    made = method.allotment(number, epsilon, 1 - share)
    assert 0 <= made.height <= 18 and sum(made.cutting) <= made.left / 2
    assert made.left - sum(made.cutting) - sum(made.deciding) > Fraction(1, 100) * made.left


def test_thresholds_are_the_most_useful_ones_and_give_the_papers_62():
    """Its equation 31 has two signs turned round: what it says in section 7.7 comes out of the right ones."""
    growing = np.array([2 ** (depth / 3) for depth in range(16)])
    epsilons = (0.1 - 15 * 1e-3 - 1e-3) * growing / growing.sum()
    found, nodes = np.array(thresholds(3.5e6, list(epsilons))), 2.0 ** np.arange(16)
    assert round(found[-1]) == 62
    assert (nodes * found).sum() == pytest.approx(3.5e6)
    useful = (nodes * np.exp(-epsilons * found)).sum()
    rng = np.random.default_rng(31)
    for _ in range(200):  # moving people elsewhere makes more counts useless
        away = rng.normal(0, 1, 16)
        away -= (nodes * away).sum() / nodes.sum()
        assert (nodes * np.exp(-epsilons * (found + away))).sum() > useful


def test_adaptive_thresholds_are_used_at_every_height_and_never_below_0():
    method = replace(HTF.published(Quadtree.around(BOX, 10), "0.1"), stop_at=None)
    made = method.allotment(3.5e6, 0.1, 1 - method.share_of_number)
    assert min(made.fullness) == made.fullness[0] == 0 and 40 < made.fullness[-1] < 80
    assert max(method.allotment(50.0, 10.0, Fraction(1)).fullness) < 50


def test_a_run_asks_as_the_paper_does(curator):
    result = ended(QUICK, curator, PureDP(1))
    first, second, third = (exchange.question for exchange in result.transcript[:3])
    assert first.share == Fraction("1e-4")
    number = max(float(result.transcript[0].answer.sums[0]), 1.0)
    height = floor(log2(number * 1 / 10))
    assert isinstance(second, Query) and isinstance(third, Measure)
    assert float(second.share) == pytest.approx(
        (float(1 - first.share) - height * 1e-3) * (2 ** (1 / 3) - 1) / (2 ** ((height + 1) / 3) - 1), rel=1e-6
    )
    assert third.share == Fraction("1e-3") * Fraction(3, 7)
    # Lap(2/ε″), ε″ = ε'/7, on costs that are counted in sixteenths.
    assert result.transcript[2].answer.stddev[0] / 16 == pytest.approx(sqrt(2) * 2 * 7 / 1e-3, rel=1e-6)


def test_every_leaf_is_counted_last_with_all_that_is_left_and_that_is_published(curator):
    result = ended(QUICK, curator, PureDP(1))
    cells = result.value.cells
    paid = np.array([Fraction(0)] * cells.size)
    last, numbers = [None] * cells.size, np.zeros(cells.size)
    first, end = cells.spans
    for question, answer in result.transcript:
        low, high = question.where[0].spans
        holder = np.searchsorted(low, first, "right") - 1
        inside = (holder >= 0) & (end <= high[holder])
        paid[inside] += question.share
        for i in np.flatnonzero(inside):
            last[i] = question
            numbers[i] = answer.sums[holder[i]]
    assert set(paid.tolist()) == {Fraction(1)}
    assert all(isinstance(question, Query) for question in last)
    assert np.array_equal(result.value.values, numbers) and np.array_equal(result.value.unbiased, numbers)


def test_leaves_have_few_people_or_few_pixels(curator):
    result = ended(QUICK, curator, PureDP(1))
    tree = result.value.cells.tree
    assert isinstance(tree, BinaryPartition)
    west, north, east, south = tree.rectangles(result.value.cells.cells)
    pixels = (east - west) * (south - north)
    assert pixels.sum() == 4**FINE.depth and (pixels > 5).any()
    exact = np.array(curator.table.votes(tree, AtMostRows(1)).weights)
    assert exact.sum() == PEOPLE


def test_other_readings_use_every_answer_and_keep_the_total(curator):
    plain = ended(QUICK, curator, PureDP(1)).transcript
    prices = curator.prices(PureDP(1))
    shown = replay(replace(QUICK, reading=Reading.NONNEGATIVE), prices, PureDP(1), plain).value
    published = replay(QUICK, prices, PureDP(1), plain).value
    assert shown.values.min() >= 0
    assert shown.values.sum() == pytest.approx(published.values.sum())
    assert np.array_equal(shown.unbiased, published.unbiased)
    assert np.abs(shown.values - published.values).max() > 1


def test_a_stored_run_is_replayed_to_the_same_map(curator):
    done = ended(QUICK, curator, PureDP(1))
    again = replay(QUICK, curator.prices(PureDP(1)), PureDP(1), done.transcript).value
    assert again.cells == done.value.cells and np.array_equal(again.values, done.value.values)


def test_only_a_curator_can_say_what_a_cut_costs(curator):
    with pytest.raises(Unanswerable, match=r"HTF asks for a Measure.*only a curator"):
        run(QUICK, OnlySums(curator), PureDP(1), Unrecorded())
    halved = run(replace(QUICK, turns=0), OnlySums(curator), PureDP(1), Unrecorded())
    assert {type(exchange.question) for exchange in halved.transcript} == {Query}


def test_one_of_all_lines_is_chosen_at_the_price_of_a_level(curator):
    """`turns` of None: a choice in place of 2T + 1 costs; every way to a leaf still costs all of the budget, once."""
    result = ended(replace(QUICK, turns=None), curator, PureDP(1))
    choices = [exchange.question for exchange in result.transcript if isinstance(exchange.question, Choice)]
    assert not any(isinstance(exchange.question, Measure) for exchange in result.transcript)
    assert {question.share for question in choices} == {Fraction("1e-3")}
    for question in choices:
        assert len(question.scores.candidates.lines) == (question.scores.along[1] - question.scores.along[0] - 1).sum()
    assert Learned.EVENNESS in replace(QUICK, turns=None).disclosure.learned
    with pytest.raises(Unanswerable, match=r"HTF asks for a Choice.*only a curator"):
        run(replace(QUICK, turns=None), OnlySums(curator), PureDP(1), Unrecorded())
    again = replay(replace(QUICK, turns=None), curator.prices(PureDP(1)), PureDP(1), result.transcript).value
    assert again.cells == result.value.cells and np.array_equal(again.values, result.value.values)


def test_where_there_are_too_many_lines_some_at_equal_distances_are_weighed(monkeypatch):
    monkeypatch.setattr("hazemap.algorithms.published.homogeneous_tree.MOST_CANDIDATES", 1 << 8)
    method = HTF(FINE, turns=None, height=4)
    result = ended(method, Curator(TOWN, Stream.fixed(b"lines")), PureDP(1))
    choices = [exchange.question.scores for exchange in result.transcript if isinstance(exchange.question, Choice)]
    assert choices[0].lines == 256 and len(choices[0].candidates.lines) == 255
    assert all(len(scores.candidates.lines) <= 256 for scores in choices)


def test_with_much_to_spend_the_best_of_all_lines_is_cut():
    """Where a crowd ends: two thirds of the square are empty."""
    rng, tree = np.random.default_rng(3), Quadtree.around(BOX, 6)
    west, south, east, north = (float(edge[0]) for edge in tree.bounds(tree.root))
    lon = west + (east - west) * rng.uniform(0, 0.31, 4_000)
    lat = south + (north - south) * rng.uniform(0.01, 0.99, 4_000)
    crowd = MemoryTable(np.arange(4_000), {"lon": lon, "lat": lat})
    method = HTF(tree, turns=None, height=1, share_of_number=Fraction(1, 1000), share_a_level=Fraction(1, 4))
    cells = ended(method, Curator(crowd, Stream.fixed(b"crowd")), PureDP(8)).value.cells
    assert 20 in set(cells.tree.rectangles(cells.cells).east.tolist())  # ⌈0.31 · 64⌉


class OnlySums:
    """Somebody who can answer for sums and for nothing else."""

    def __init__(self, curator: Curator) -> None:
        self.prices, self.answer = curator.prices, curator.answer

    def answers(self, question) -> bool:
        """Sums."""
        return question is Query


def test_an_empty_town_is_one_leaf_or_few():
    empty = Curator(Once(people_of(0)), Stream.fixed(b"nobody"))
    cells = ended(HTF.published(FINE, 1), empty, PureDP(1)).value.cells
    assert cells.size < 200


def people_of(number: int):
    """Some people of the town."""
    everybody = people()
    return MemoryTable(everybody.person[:number], {k: v[:number] for k, v in everybody.columns.items()})


def test_rows_that_lie_nowhere_are_counted_with_all_of_the_budget(lost):
    result = ended(replace(QUICK, bounding=AtMostRows(1, outside=Outside.PEOPLE)), Curator(Once(lost.table)), PureDP(1))
    assert result.value.cells.cells[-1] == NOWHERE
    assert result.transcript[-1].question.share == 1
    assert result.value.unbiased[-1] == pytest.approx(5_000, abs=30)


def test_a_vote_shared_out_is_counted_in_people():
    few = Curator(Once(people_of(2_000)), Stream.fixed(b"few"))
    result = ended(HTF(FINE, OneVote(256), stop_at=500), few, PureDP(1))
    assert result.value.unbiased.sum() == pytest.approx(2_000, abs=100)


def test_gaussian_noise_and_a_found_box_will_do(curator):
    assert ended(HTF(FINE, stop_at=500), curator, ZCDP("0.05")).value.cells.size > 1
    found = ended(PrivateBoundingBox(HTF(TREE, stop_at=500), finest=200), curator, PureDP(1))
    assert isinstance(found.value.cells.tree, BinaryPartition)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: HTF(Hexagons(Box(13, 52, 14, 53), 5, 7)),
        lambda: HTF(FINE, share_of_number=Fraction(1)),
        lambda: HTF(FINE, share_a_level=Fraction(-1, 9)),
        lambda: HTF(FINE, people_a_cell=0),
        lambda: HTF(FINE, turns=-1),
    ],
)
def test_what_it_cannot_cut_or_pay_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()
