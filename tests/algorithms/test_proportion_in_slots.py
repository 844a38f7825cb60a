"""Shares in slots of time: what is asked and paid, what comes of it, and how often its intervals hold."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap import codec
from hazemap.algorithms import GOALS, METHODS, PrivateBoundingBox, Proportion, ProportionInSlots
from hazemap.algorithms.proportion import Narrow, Significant
from hazemap.encoders import Counts
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.estimate.marked_counts import MarkedSlots, of_all_slots
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Outside, RowIsPerson
from hazemap.temporal.time_slots import Always, Clock, Weekdays
from hazemap.trust.curator import Curator
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.marks import Marks
from hazemap.values.sides_in_slots import SidesInSlots

BOX = Box(13.2, 52.4, 13.6, 52.6)
HOURS = Clock.hours("UTC")
SQUARES = Quadtree.around(BOX, 7)


def people(rows: int = 20_000) -> MemoryTable:
    """Rows of a quarter as many people: most in the first hours and next to none in the last; marks grow eastwards."""
    rng = np.random.default_rng(7)
    hour = np.minimum(rng.exponential(5, rows).astype(int), 23)
    spot = np.clip(rng.normal(0.5, 0.15, (rows, 2)), 0.01, 0.99)
    mark = (rng.random(rows) < 0.1 + 0.5 * spot[:, 0]).astype(int)
    columns = {"lon": 13.2 + 0.4 * spot[:, 0], "lat": 52.4 + 0.2 * spot[:, 1], "time": hour * 3600.0 + 60, "mark": mark}
    return MemoryTable(rng.integers(0, rows // 4, rows), columns)


@pytest.fixture(scope="module")
def table() -> MemoryTable:
    return people()


def asked(method, table, budget=None, stream=b"marks in slots"):
    return run(method, Curator(table, Stream.fixed(stream)), budget or PureDP(1), Unrecorded())


def truth(found, table) -> np.ndarray:
    """What the last question counts, without noise: float64[slots, sides, cells]."""
    encoder = found.transcript[-1].question.encoder
    slots, sides, _ = found.value.numbers.shape
    return (encoder.total(table) / encoder.bounding.unit).reshape(sides, -1, slots).transpose(2, 0, 1)


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("0.1")], ids=str)
@pytest.mark.parametrize("tree", [SQUARES, Hexagons(BOX, 5, 8)], ids=lambda tree: type(tree).__name__)
def test_the_shares_are_all_of_the_budget_and_it_is_replayed(table, tree, budget):
    method = ProportionInSlots(tree, HOURS, AtMostRows(2))
    found = asked(method, table, budget)
    assert sum(exchange.question.share for exchange in found.transcript) == 1
    kinds = [type(exchange.question.encoder.cells.places) for exchange in found.transcript]
    assert kinds == [AllSlots, AllSlots, EachSlot]
    again = replay(method, Curator(table).prices(budget), budget, found.transcript).value
    assert np.array_equal(again.numbers, found.value.numbers)
    known = (*METHODS, *GOALS)
    assert codec.loads(codec.dumps(method), known) == method
    boxed = PrivateBoundingBox(method)
    assert codec.loads(codec.dumps(boxed), known) == boxed


def test_with_next_to_no_noise_slots_are_the_truth_and_add_up(table):
    found = asked(ProportionInSlots(SQUARES, HOURS, RowIsPerson()), table, PureDP(10_000))
    made, true = found.value, truth(found, table)
    assert made.first.cells.size > 300 and np.allclose(made.numbers, true, atol=0.51)
    night, total = made.during([22, 23]), made.total
    assert np.allclose(night.sides, true[22:].sum(axis=0), atol=1.1)
    assert np.array_equal(total.sides, made.numbers.sum(axis=0))
    assert total.stddev == pytest.approx(24**0.5 * made.first.stddev)
    assert total.kurtosis == pytest.approx(made.first.kurtosis / 24)
    shares = total.shares("mark")
    everybody = true.sum(axis=0)
    some = everybody.sum(axis=0) > 0
    assert np.allclose(shares.values[some], (everybody[1] / np.maximum(everybody.sum(axis=0), 1))[some], atol=0.05)


def test_cells_are_cut_for_a_slot_of_the_usual_size(table):
    sizes = []
    for slots in (None, Clock("UTC", (0, 43200)), HOURS):
        method = ProportionInSlots(SQUARES, slots, AtMostRows(2)) if slots else Proportion(SQUARES, AtMostRows(2))
        made = asked(method, table, PureDP(4)).value
        sizes.append(made.first.cells.size if slots else made.cells.size)
    assert sizes[0] > sizes[1] > sizes[2] >= 16
    wide, narrow = (
        asked(ProportionInSlots(SQUARES, HOURS, AtMostRows(2), goal), table, PureDP(4)).value.first.cells.size
        for goal in (Narrow(Fraction(9, 10)), Narrow(Fraction(1, 10)))
    )
    assert wide > narrow


def test_there_are_never_more_cells_than_may_be(table, monkeypatch):
    monkeypatch.setattr("hazemap.algorithms.proportion.MOST_SHARES", 48 * 40)
    found = asked(ProportionInSlots(SQUARES, HOURS, RowIsPerson(), Significant(Fraction(0))), table, PureDP(8))
    assert 16 < found.value.first.cells.size <= 40
    with pytest.raises(InputError, match="fewer slots, fewer marks"):
        ProportionInSlots(SQUARES, Clock("UTC", tuple(range(0, 86400, 60))))


def test_it_runs_in_a_box_that_it_finds_and_among_simulated_devices(table):
    found = asked(PrivateBoundingBox(ProportionInSlots(Quadtree.world(0), Weekdays("UTC"))), table, PureDP(4)).value
    assert found.total.cells.tree.depth > 5 and abs(found.total.people.sum() - 5_000) < 300
    cohort = Cohort(3_000, 1_500, sampling=Sampling.ONE)
    trust = SimulatedSecureAggregation(table, cohort, Stream.fixed(b"devices"))
    made = run(ProportionInSlots(SQUARES, Weekdays("UTC")), trust, PureDP(4), Unrecorded()).value
    assert abs(made.total.people.sum() - 3_000) < 700


@pytest.mark.parametrize(
    "wrong",
    [
        {"slots": Always()},
        {"deciding": (Fraction(1),)},
        {"deciding": ()},
        {"bounding": AtMostRows(1, Outside.PEOPLE)},
        {"marks": ("a", "a")},
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(InputError):
        ProportionInSlots(**{"tree": SQUARES, "slots": HOURS, **wrong})


def test_an_answer_to_another_question_is_no_share_in_slots(table):
    found = asked(ProportionInSlots(SQUARES, Weekdays("UTC")), table)
    first, last, marks = found.transcript[0], found.transcript[-1], Marks.of("mark")
    for read, exchange, why in (
        (MarkedSlots.of, first, "all slots together"),
        (of_all_slots, last, "each slot apart"),
    ):
        with pytest.raises(InputError, match=why):
            read(*exchange, marks)
    with pytest.raises(InputError, match="does not ask for a, b in slots"):
        MarkedSlots.of(*last, Marks.of("a", "b"))
    with pytest.raises(InputError, match="counts of sides"):
        MarkedSlots.of(object(), last.answer, marks)
    with pytest.raises(InputError, match="each side of each cell in each slot"):
        MarkedSlots(HOURS, found.value.numbers, found.value.first)
    for slots in ((), (7,), (-1,)):
        with pytest.raises(InputError, match="name some of the 7 slots"):
            found.value.during(slots)
    assert isinstance(last.question.encoder, Counts) and isinstance(last.question.encoder.cells, SidesInSlots)


def held(shares, true) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of cells with people: whether the interval holds the true share, how many people they are, and its width."""
    low, high = shares.interval()
    number = true.sum(axis=0)
    some = number > 0
    share = true[1][some] / number[some]
    low, high = low[some], high[some]
    return (low - 1e-12 <= share) & (share <= high + 1e-12), number[some], high - low


@pytest.mark.slow
@pytest.mark.parametrize("budget", [PureDP(Fraction(1, 2)), PureDP(2), PureDP(8), ZCDP(Fraction(1, 8))], ids=str)
@pytest.mark.parametrize("rule", [AtMostRows(2), OneVote(5), RowIsPerson()], ids=str)
def test_intervals_hold_in_cells_in_slots_in_sums_of_slots_and_where_nearly_nobody_is(table, rule, budget):
    """60 releases of fixed noise. A slot with three people or fewer in a cell says that next to nothing is known."""
    method = ProportionInSlots(SQUARES, HOURS, rule)
    each, sums = list[tuple[np.ndarray, ...]](), list[np.ndarray]()
    for number in range(60):
        found = asked(method, table, budget, b"%d" % number)
        made, true = found.value, truth(found, table)
        each += [held(made.during([slot]).shares("mark"), true[slot]) for slot in range(24)]
        for some in (range(24), range(7, 10), (0, 5, 23)):
            sums.append(held(made.during(some).shares("mark"), true[list(some)].sum(axis=0))[0])
    good, number, width = (np.concatenate(column) for column in zip(*each, strict=True))
    assert good.mean() >= 0.95 and np.concatenate(sums).mean() >= 0.94
    for least, most in ((0, 3), (3, 10), (10, 30), (30, 100), (100, 1e9)):
        some = (number > least) & (number <= most)
        if some.sum() > 1_000:
            assert good[some].mean() >= 0.94, (least, most)
    if budget != PureDP(8) or not isinstance(rule, OneVote):
        assert np.median(width[number <= 3]) > 0.9
