"""The method of maps with time: what it asks, what it pays, and what comes of it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hazemap import codec
from hazemap.algorithms import METHODS, Adaptive, AdaptiveSlots, PrivateBoundingBox
from hazemap.algorithms.adaptive_slots import united
from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, Unanswerable
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.federated.trust.one_report import OneReportTrust
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.shuffled import ShuffledParts, ShuffledReports
from hazemap.federated.trust.two_servers import TwoServers
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Outside, RowIsPerson
from hazemap.temporal.time_slots import Always, Clock, Weekdays
from hazemap.trust.curator import Curator
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.timed_tree import TimedTree

BOX = Box(13.2, 52.4, 13.6, 52.6)
HOURS = Clock.hours("UTC")
SQUARES = Quadtree.around(BOX, 7)


@pytest.fixture
def commuters() -> MemoryTable:
    """20,000 rows of 4,000 people: at home at night, and in the middle by day."""
    rng = np.random.default_rng(7)
    hour = rng.integers(0, 24, 20_000)
    day = (hour >= 8) & (hour < 18)
    spot = np.where(day[:, None], rng.normal(0.5, 0.04, (20_000, 2)), rng.uniform(0.05, 0.95, (20_000, 2)))
    columns = {"lon": 13.2 + 0.4 * spot[:, 0], "lat": 52.4 + 0.2 * spot[:, 1], "time": hour * 3600.0 + 60}
    return MemoryTable(rng.integers(0, 4_000, 20_000), columns)


def asked(made, table, budget=None):
    return run(made, Curator(table, Stream.fixed(b"slots")), budget or PureDP(1), Unrecorded())


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("0.01")], ids=str)
@pytest.mark.parametrize("tree", [SQUARES, Hexagons(BOX, 5, 8)], ids=lambda tree: type(tree).__name__)
def test_the_shares_are_all_of_the_budget_and_it_is_replayed(commuters, tree, budget):
    method = AdaptiveSlots(tree, HOURS, AtMostRows(2, Outside.PEOPLE))
    found = asked(method, commuters, budget)
    assert sum(exchange.question.share for exchange in found.transcript) == 1
    assert all(isinstance(exchange.question.encoder, Counts) for exchange in found.transcript)
    kinds = [type(exchange.question.encoder.cells) for exchange in found.transcript]
    assert kinds.index(EachSlot) == len([kind for kind in kinds if kind is AllSlots])
    again = replay(method, Curator(commuters).prices(budget), budget, found.transcript).value
    assert np.array_equal(again.values, found.value.values)
    assert np.array_equal(again.unbiased, found.value.unbiased)
    assert codec.loads(codec.dumps(method), METHODS) == method


def test_with_next_to_no_noise_hours_are_the_truth(commuters):
    made = asked(AdaptiveSlots(SQUARES, HOURS, RowIsPerson()), commuters, PureDP(10_000)).value
    where = made.cells.locate(SQUARES.cell_at(commuters.columns, SQUARES.depth))
    truth = np.zeros((24, made.cells.size))
    np.add.at(truth, (HOURS.at(commuters.columns["time"]), where), 1)
    assert made.cells.size > 300
    assert np.allclose(made.unbiased, truth, atol=0.51)
    assert np.allclose(np.stack([made.during([hour]).values for hour in range(24)]), truth, atol=1.5)


def test_the_first_grid_is_as_fine_as_there_are_people(commuters):
    """As without slots, people are counted first; devices, which send so many numbers, are not asked for that."""
    sizes = []
    for people in (60, 4_000):
        some = commuters.person < people
        table = MemoryTable(commuters.person[some], {name: column[some] for name, column in commuters.columns.items()})
        first, second, *_ = asked(AdaptiveSlots(SQUARES, HOURS), table, PureDP("0.3")).transcript
        assert first.question.size == 1 and first.question.share == Fraction(1, 100)
        sizes.append(second.question.size)
    assert sizes[0] < sizes[1] <= 256
    assert asked(AdaptiveSlots(SQUARES, HOURS, most_numbers=5_000), commuters).transcript[0].question.size == 64


@pytest.mark.parametrize(("epsilon", "rounds"), [("0.01", 1), ("10", 3)])
def test_rounds_that_could_tell_nothing_of_the_first_grid_are_left_out(commuters, epsilon, rounds):
    """What they would cost counts the cells; where there are people enough, every round is asked."""
    method = AdaptiveSlots(SQUARES, HOURS)
    shares = [exchange.question.share for exchange in asked(method, commuters, PureDP(epsilon)).transcript]
    day = method.day
    deciding, cells = shares[1 : 1 + rounds], shares[1 + rounds]
    assert shares[0] == day.sizing and deciding == list(day.deciding[-rounds:])
    assert cells > max(deciding)
    assert sum(shares) == 1


def test_a_number_of_standard_errors_is_not_negative():
    with pytest.raises(InputError, match="telling"):
        replace(Adaptive.for_slots(SQUARES), telling=Fraction(-1))


def test_hours_that_differ_are_told_apart(commuters):
    """The middle is full by day: the part of people in it, by day and at night."""
    made = asked(AdaptiveSlots(SQUARES, HOURS, RowIsPerson()), commuters).value
    middle = Box(13.35, 52.47, 13.45, 52.53)
    west, south, east, north = SQUARES.bounds(made.finer([12]).cells.cells)
    inside = (west > middle.west) & (east < middle.east) & (south > middle.south) & (north < middle.north)
    noon, night = (made.finer([hour]).values for hour in (12, 2))
    assert noon[inside].sum() / noon.sum() > 0.6
    assert night[inside].sum() / night.sum() < 0.2


def test_few_people_are_asked_once_by_slot(commuters):
    few = commuters.person < 30
    table = MemoryTable(commuters.person[few], {name: column[few] for name, column in commuters.columns.items()})
    method = AdaptiveSlots(SQUARES, HOURS)
    found = asked(method, table, PureDP("0.1"))
    last = found.transcript[-1].question
    assert last.share == method.least + method.hours
    assert last.encoder.cells.size == 24
    assert sum(exchange.question.share for exchange in found.transcript) == 1


@pytest.mark.parametrize("level", [0, 2, 4])
def test_cells_of_slots_tile_and_are_as_full_as_asked(level):
    tree = Quadtree.world(depth=5)
    cells = Leaves(
        tree, np.concatenate([tree.children(Leaves.at_level(tree, 4).cells[:64]), Leaves.at_level(tree, 4).cells[64:]])
    )
    numbers = np.full(cells.size, 1.0)
    found = united(cells, numbers, 4.0**level)
    assert not found.nested
    assert (found.locate(cells.spans[0]) >= 0).all()
    assert found.cells.size <= cells.size
    if not level:
        assert found.same_cells(cells)
    assert united(cells, numbers * 0, 1.0).size == 1


def test_what_makes_no_sense_is_refused():
    for wrong in ({"slots": Always()}, {"hours": Fraction(0)}, {"least": Fraction(9, 10)}, {"most": Fraction(9, 10)}):
        with pytest.raises(InputError):
            AdaptiveSlots(**{"tree": SQUARES, "slots": HOURS, **wrong})


def test_it_runs_in_a_box_that_it_finds(commuters):
    box = PrivateBoundingBox(AdaptiveSlots(Quadtree.world(0), Weekdays("UTC"), AtMostRows(1, Outside.PEOPLE)))
    made = asked(box, commuters, PureDP(4)).value
    assert made.total.cells.tree.depth > 5
    assert abs(made.total.unbiased.sum() - 4_000) < 200


def samples(commuters, stream):
    """A trust model of each kind among the commuters; each has a budget that it can spend."""
    people = len(np.unique(commuters.person))
    batch, cohort = ReportBatch(people, people), Cohort(3_000, 1_500, sampling=Sampling.ONE)
    pure, spilled = PureDP(1), ApproxDP(2, "1e-6")
    return {
        "secure sums": (SimulatedSecureAggregation(commuters, cohort, stream, Fraction(1, 20)), pure),
        "two servers": (TwoServers(commuters, batch, stream), pure),
        "two servers, randomised": (TwoServers(commuters, batch, stream, local_epsilon=Fraction(8)), PureDP(4)),
        "shuffled parts": (ShuffledParts(commuters, batch, stream), pure),
        "shuffled reports": (ShuffledReports(commuters, batch, spilled, stream), spilled),
        "local reports": (LocalReports(commuters, people, stream=stream), PureDP(4)),
    }


@pytest.mark.parametrize(
    "trust",
    [
        "secure sums",
        "two servers",
        "two servers, randomised",
        "local reports",
        pytest.param("shuffled parts", marks=pytest.mark.slow),
        pytest.param("shuffled reports", marks=pytest.mark.slow),
    ],
)
def test_every_trust_model_answers_it_within_its_numbers(commuters, trust):
    method = AdaptiveSlots(SQUARES, HOURS, most_numbers=3_000)
    asked_of, budget = samples(commuters, Stream.fixed(trust.encode()))[trust]
    found = run(method, asked_of, budget, Unrecorded())
    assert sum(exchange.question.size for exchange in found.transcript) <= 3_000
    assert sum(exchange.question.share for exchange in found.transcript) == 1
    made, least = found.value, min(exchange.answer.people for exchange in found.transcript)
    every = made.during(range(24))
    assert np.allclose(made.unbiased.sum(axis=0), every.unbiased)
    sure = every.noise.of(np.ones(made.cells.size)).stddev
    assert abs(every.unbiased.sum() - least) < 8 * sure + 200  # some fall silent; noise alone passes with < 1e-12
    again = replay(method, asked_of.prices(budget), budget, found.transcript).value
    assert np.array_equal(again.values, made.values)


def test_one_report_of_each_person_holds_no_time(commuters):
    trust = OneReportTrust(commuters, ReportBatch(3_000, 3_000), 6, Stream.fixed(b"one"))
    with pytest.raises(Unanswerable, match="squares or hexagons"):
        run(AdaptiveSlots(SQUARES, HOURS), trust, PureDP(1), Unrecorded())


@pytest.mark.parametrize("most", [780, 1_000, 5_000, 40_000])
@pytest.mark.parametrize("epsilon", [1, 10_000])
def test_no_answers_make_a_device_send_more_numbers(commuters, most, epsilon):
    found = asked(AdaptiveSlots(SQUARES, HOURS, RowIsPerson(), most_numbers=most), commuters, PureDP(epsilon))
    assert sum(exchange.question.size for exchange in found.transcript) <= most
    assert found.value.unbiased.sum() == pytest.approx(20_000, abs=1_000)


def test_numbers_too_few_for_all_slots_are_refused_at_once():
    with pytest.raises(InputError, match="24 slots need 768"):
        AdaptiveSlots(SQUARES, HOURS, most_numbers=767)
    AdaptiveSlots(SQUARES, HOURS, most_numbers=768)
    with pytest.raises(InputError, match="fewer slots"):
        AdaptiveSlots(SQUARES, Clock("UTC", tuple(range(0, 86_400, 60))), most_numbers=5_000)


@pytest.mark.slow
def test_intervals_hold_for_the_people_of_a_sample_who_all_answer(commuters):
    """Everybody is asked and answers: 95 % intervals of slots and of cells in them hold what the rule leaves."""
    people = len(np.unique(commuters.person))
    cohort = Cohort(people, people, sampling=Sampling.ONE)
    _, base, weights = commuters.bounded(TimedTree(SQUARES, HOURS), AtMostRows(1))
    where = TimedTree(SQUARES, HOURS).taken_apart(base)
    held = []
    for number in range(20):
        trust = SimulatedSecureAggregation(commuters, cohort, Stream.fixed(b"sample %d" % number))
        made = run(AdaptiveSlots(SQUARES, HOURS, most_numbers=20_000), trust, PureDP(8), Unrecorded()).value
        truth = np.zeros(made.unbiased.shape)
        np.add.at(truth, (where.slots, made.cells.locate(where.cells)), weights)
        for hour in range(0, 24, 3):
            one = made.during([hour])
            held += (np.abs(one.unbiased - truth[hour]) <= 1.96 * one.stddev + 0.5).tolist()
    # Of some thousand noisy numbers, more than 10 % miss with a probability below 1e-12; Laplace tails are heavier
    assert len(held) > 800 and 0.9 < np.mean(held) <= 1
