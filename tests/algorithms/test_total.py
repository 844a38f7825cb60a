"""The total of a map is known well, by a share of the budget of its own."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import hazemap
from hazemap.algorithms import Adaptive, PrivateBoundingBox
from hazemap.cells import WholeDomain
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Outside
from hazemap.trust.curator import Curator

BOX = Box(13.2, 52.4, 13.6, 52.6)
TREE = Quadtree.around(BOX, 11)
PEOPLE = 1_083


def few_people() -> pa.Table:
    """Made up: three clusters in a town."""
    rng = np.random.default_rng(4)
    spot = (
        rng.normal(0, 0.01, (PEOPLE, 2)) + np.array([[13.3, 52.5], [13.4, 52.45], [13.5, 52.55]])[rng.choice(3, PEOPLE)]
    )
    return pa.table({"user": np.arange(PEOPLE), "lon": spot[:, 0], "lat": spot[:, 1]})


def released(method, seed: int):
    trust = Curator(open_table(few_people(), person="user"), Stream.fixed(b"a total %d" % seed))
    return run(method, trust, PureDP(1), Unrecorded()).value


def test_the_total_of_1083_people_is_known_to_15_people_at_epsilon_1(tmp_path):
    """It was 35. With a box that has to be found first it is a little more: that takes 4 % of the budget."""
    made = hazemap.release(
        few_people(), person="user", epsilon=1, box=str(BOX), ledger=hazemap.Ledger(tmp_path / "ledger.sqlite")
    )
    total = made.total()
    assert total.stddev <= 15
    assert abs(total.unbiased - PEOPLE) < 7 * total.stddev


def test_the_total_is_as_well_known_without_a_box():
    found = released(PrivateBoundingBox(Adaptive(Quadtree.world(depth=0)), finest=10), 1)
    assert found.noise.of(found.places.astype(float)).stddev <= 15


def test_without_a_share_of_its_own_the_total_is_not_known_so_well():
    """The twin that must fail: the shares that the method had before."""
    before = Adaptive(
        TREE,
        first_cells=256,
        deciding=tuple(Fraction(k, 100) for k in (2, 5, 10)),
        fullness=(20, 6, 16),
        coarser=((2, Fraction(8, 100)), (4, Fraction(2, 100))),
    )
    made = released(before, 1)
    assert made.noise.of(made.places.astype(float)).stddev > 25


def test_rows_that_lie_nowhere_are_asked_beside_everything_at_no_price():
    for outside in Outside:
        made = released(Adaptive(TREE, AtMostRows(1, outside)), 2)
        assert made.noise.of(made.places.astype(float)).stddev <= 15
        assert made.places.all() != outside.asked


def test_the_total_of_many_roots_is_known_as_well():
    """It was ± 15 √roots: everything is one number above them, and least squares know it."""
    tree = Hexagons(BOX, 6, 9)
    assert len(tree.root) > 10
    for outside in (Outside.DROP, Outside.PEOPLE):
        made = released(Adaptive(tree, AtMostRows(1, outside)), 3)
        total = made.noise.of(made.places.astype(float))
        assert total.stddev <= 15
        assert abs(made.unbiased[made.places].sum() - PEOPLE) < 7 * total.stddev


def test_nobody_pays_more_for_everything_than_for_the_roots():
    """All rounds of a run cost the budget, and its last one what any question to all costs."""
    tree = Hexagons(BOX, 6, 9)
    trust = Curator(open_table(few_people(), person="user"), Stream.fixed(b"the price of all"))
    made = run(Adaptive(tree, AtMostRows(2)), trust, PureDP(1), Unrecorded())
    questions = [exchange.question for exchange in made.transcript]
    assert sum(question.share for question in questions) == 1
    assert questions[-1].encoder.cells == WholeDomain(tree)
    assert made.transcript[-1].answer.stddev[0] == pytest.approx(2**0.5 * 2 / 0.095, rel=0.01)


@pytest.mark.parametrize("epsilon", ["0.1", "3", "40"])
def test_the_total_errs_by_no_more_than_the_budget_allows_or_one_in_a_hundred_people(epsilon):
    trust = Curator(open_table(few_people(), person="user"), Stream.fixed(b"any budget"))
    made = run(Adaptive(TREE), trust, PureDP(epsilon), Unrecorded()).value
    assert made.noise.of(made.places.astype(float)).stddev <= max(15 / float(epsilon), PEOPLE / 100)


def test_what_the_total_of_many_people_does_not_need_counts_cells():
    for epsilon, share in (("1", Fraction(95, 1000)), ("40", Fraction(20, 1000))):
        trust = Curator(open_table(few_people(), person="user"), Stream.fixed(b"many"))
        made = run(Adaptive(TREE), trust, PureDP(epsilon), Unrecorded())
        shares = [exchange.question.share for exchange in made.transcript]
        assert shares[-1] == share and sum(shares) == 1
        always = run(Adaptive(TREE, total_within=None), trust, PureDP(epsilon), Unrecorded())
        assert always.transcript[-1].question.share == Fraction(95, 1000)
