"""HTF+: few levels counted well, every answer kept, and sums alone."""

from dataclasses import replace
from fractions import Fraction
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.published.test_htf import Once, OnlySums

from hazemap.algorithms import HTFPlus
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Outside
from hazemap.trust.curator import Curator

from .conftest import BOX, people

FINE = Quadtree.around(BOX, 9)
METHOD = HTFPlus(FINE)


@pytest.fixture(scope="module")
def curator() -> Curator:
    """A curator of the town."""
    return Curator(Once(people()), Stream.fixed(b"town, again"))


@pytest.fixture(scope="module")
def done(curator):
    return run(METHOD, curator, PureDP(1), Unrecorded())


@given(st.floats(-1e6, 1e10), st.floats(0.001, 20), st.integers(0, 3), st.integers(0, 12))
def test_every_way_has_something_left_for_its_leaf(number, epsilon, turns, deeper):
    made = replace(METHOD, turns=turns, deeper=deeper).allotment(number, epsilon, 10.0)
    assert made.left - sum(made.deciding) - sum(made.cutting) > Fraction(1, 2)
    assert made.height <= 18


def test_two_levels_decide_four_above_the_height_of_htf_and_at_it():
    made = HTFPlus(Quadtree.around(BOX, 12)).allotment(1e6, 0.5, 10.0)
    height = round(log2(1e6 * 0.5 / 10))
    assert {level: share for level, share in enumerate(made.deciding) if share} == {
        height - 4: Fraction(7, 25),
        height: Fraction(3, 25),
    }
    assert made.height == height + 8 and set(made.fullness) == {50.0} and not any(made.cutting)


def test_it_asks_sums_alone_so_anybody_can_answer(curator, done):
    assert {type(exchange.question) for exchange in done.transcript} == {Query}
    assert run(METHOD, OnlySums(curator), PureDP(1), Unrecorded()).value.cells.size > 50


def test_everybody_pays_the_whole_budget_and_nobody_more(done):
    """Along the way of each leaf: the number, the counts of its ancestors, its own."""
    tree = done.value.cells.tree
    paid = np.zeros(done.value.cells.size)
    for exchange in done.transcript:
        where = exchange.question.encoder.cells
        own, last = tree.span(where.cells)
        first, _ = tree.span(done.value.cells.cells)
        at = np.searchsorted(np.sort(own), first, "right") - 1
        order = np.argsort(own)
        inside = (at >= 0) & (first <= last[order][np.maximum(at, 0)])
        paid[inside] += float(exchange.question.share)
    assert paid == pytest.approx(1)


def test_every_answer_has_a_say_in_the_best_guess(curator, done):
    """It is far nearer to the truth than the last counts, on which intervals rest."""
    made = done.value
    truth = Counts(made.cells, METHOD.bounding).total(curator.table)
    last = done.transcript[-1].answer
    assert np.array_equal(made.unbiased[made.stddev == last.stddev[0]], last.sums)
    assert ((made.values - truth) ** 2).mean() < 0.7 * ((made.unbiased - truth) ** 2).mean()
    assert made.values.min() >= 0


def test_a_stored_run_is_replayed_to_the_same_map(curator, done):
    again = replay(METHOD, curator.prices(PureDP(1)), PureDP(1), done.transcript).value
    assert again.cells == done.value.cells and np.array_equal(again.values, done.value.values)


def test_who_lies_nowhere_is_counted_too(lost):
    found = run(
        replace(METHOD, bounding=AtMostRows(1, Outside.PEOPLE)),
        Curator(Once(lost.table)),
        PureDP(1),
        Unrecorded(),
    )
    assert found.value.unbiased[-1] == pytest.approx(5_000, abs=30)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: HTFPlus(Hexagons(Box(13, 52, 14, 53), 5, 7)),
        lambda: HTFPlus(FINE, deciding=((0, Fraction(1)),)),
        lambda: HTFPlus(FINE, deciding=()),
        lambda: HTFPlus(FINE, fullness=-1),
        lambda: HTFPlus(FINE, turns=-1),
    ],
)
def test_what_it_cannot_cut_or_pay_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()
