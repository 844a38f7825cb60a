"""Which reports a price allows, what a device agrees to, and that nothing else can be slipped under it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hazemap import codec
from hazemap.cells import Leaves
from hazemap.encoders import Concatenation, Counts, HaarWavelet
from hazemap.errors import CodecError, InputError, Refused, Unanswerable
from hazemap.estimate.confidence_margins import reach
from hazemap.federated.protocols.secure_aggregation.minimum_parameters import MinimumParameters
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import KNOWN, Task, check, parameters_for
from hazemap.federated.trust.randomised_reports import ReportPrices, debiased, law_for, law_for_numbers, randomised
from hazemap.privacy.amplification.neighbours import ReportNeighbours
from hazemap.privacy.amplification.zcdp_of_sum import zcdp_of_sum
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.distributed_noise import DistributedNoise, NoAddedNoise
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote

TREE = Quadtree.world(depth=6)
LEVEL = Leaves.at_level(TREE, 3)
QUERY = Query(Counts(LEVEL, AtMostRows(1)), Fraction(1, 10))
COHORT = Cohort(5_000, 1_000, Fraction(1, 10), Fraction(1, 20), mode=Mode.SEMI_HONEST)
BUDGET = ApproxDP(1, "1e-6")
PRICE = ZCDP(BUDGET.rho / 10)
LAW = law_for(PRICE, 850, Fraction(8))
TASK = Task("homes", "a map", 1, QUERY, PRICE, BUDGET, COHORT, LAW)
PLAIN = Task("homes", "a map", 1, QUERY, PureDP("0.1"), PureDP(1), COHORT)


def rho_of_sum(law, honest):
    return zcdp_of_sum(law.bit_flips, honest, ReportNeighbours.REMOVAL).rho


def terms(task=TASK, clients=1_000):
    return parameters_for(task, b"r" * 32, clients, b"g" * 32, b"n" * 32)


@pytest.mark.parametrize("rho", ["0.05", "0.002", "0.0001"])
def test_a_law_is_the_loudest_that_its_price_allows_and_no_report_passes_the_most(rho):
    law = law_for(ZCDP(rho), 850, Fraction(8))
    assert rho_of_sum(law, 850) <= Fraction(rho) < rho_of_sum(Asymmetric(law.epsilon + Fraction(1, 32)), 850)
    assert law_for(ZCDP(rho), 850, Fraction(1, 2)) == Asymmetric(Fraction(1, 2))
    assert law_for(PureDP(1), 10**6, Fraction(8)) == Symmetric(Fraction(1)), "a crowd does not help a pure price"
    assert law_for(PureDP(9), 10**6, Fraction(8)).replacement == 8
    least = law_for(ZCDP("1e-12"), 2, Fraction(8))
    assert isinstance(least, Symmetric) and rho_of_sum(least, 2) <= Fraction("1e-12")


@pytest.mark.parametrize(("rho", "honest", "most", "size"), [("0.005", 850, 8, 4), ("0.0001", 10_000, 4, 10)])
def test_a_few_numbers_are_counted_with_two_chances_that_the_price_and_the_cap_allow(rho, honest, most, size):
    """Together they vary less than asymmetric reports, whoever holds what; the twin, a bit less q, costs too much."""
    price, most = ZCDP(rho), Fraction(most)
    plain, law = law_for(price, honest, most), law_for_numbers(price, honest, most, size)
    assert isinstance(law, UnaryEncoding) and law.replacement <= most
    assert rho_of_sum(law, honest) <= Fraction(rho)
    counts = np.array([honest, *([0] * (size - 1))])
    gained = law.variance(honest, counts).sum() / plain.variance(honest, counts).sum()
    assert gained < 0.95
    quieter = UnaryEncoding(law.keep, law.turn_on * Fraction(9, 10))
    assert rho_of_sum(quieter, honest) > Fraction(rho) or quieter.replacement > most
    assert law_for_numbers(price, honest, most, 10**6) == plain, "rare numbers are best counted so"
    assert law_for_numbers(PureDP(1), honest, most, size) == Symmetric(Fraction(1))


def test_the_parameters_of_a_session_of_reports_add_no_noise():
    offered = terms()
    assert offered.noise == NoAddedNoise(850) and offered.bits == 11
    assert SessionParameters.from_bytes(offered.to_bytes()) == offered
    check(TASK, offered)
    assert offered.noise.share(Stream.fixed(b""), 64).tolist() == [0] * 64


def test_a_plain_sum_without_noise_is_refused_by_the_task_and_by_the_floors():
    naked = replace(terms(PLAIN), noise=NoAddedNoise(850))
    with pytest.raises(Refused, match="noise does not follow"):
        check(PLAIN, naked)
    floors = MinimumParameters(corrupt=Fraction(1, 20), modes=frozenset(Mode))
    floors.check(terms(PLAIN))
    with pytest.raises(Refused, match="it would be exact"):
        floors.check(naked)
    replace(floors, randomised=True).check(terms())
    with pytest.raises(Refused, match="only 850 honest"):
        replace(floors, randomised=True).check(replace(terms(), noise=NoAddedNoise(851)))


@pytest.mark.parametrize("noise", [DistributedNoise(Fraction(20), 850), NoAddedNoise(849)], ids=str)
def test_a_session_of_reports_with_another_noise_is_refused(noise):
    with pytest.raises(Refused, match="noise does not follow"):
        check(TASK, replace(terms(), noise=noise))


@pytest.mark.parametrize(
    "law",
    [
        Asymmetric(LAW.epsilon + Fraction(1, 32)),
        Asymmetric(Fraction(60)),
        Symmetric(LAW.epsilon),
        UnaryEncoding(Fraction(99, 100), Fraction(1, 10**6)),
    ],
    ids=str,
)
def test_a_report_that_hides_less_than_the_price_says_is_refused(law):
    with pytest.raises(InputError, match="costs more than"):
        terms(replace(TASK, randomiser=law))
    digest = bytes.fromhex(codec.digest(replace(TASK, randomiser=law)))
    with pytest.raises(Refused, match="what this task promises: a sum in which 850"):
        check(replace(TASK, randomiser=law), replace(terms(), task=digest))


def test_a_shard_too_small_for_the_price_is_refused():
    with pytest.raises(InputError, match="in which 680 honest"):
        terms(clients=800)
    few = {"clients": 800, "survivors": 720, "noise": NoAddedNoise(680)}
    with pytest.raises(Refused, match="costs more than"):
        check(TASK, replace(terms(), **few))


def test_a_pure_price_is_that_of_one_report_alone():
    pure = replace(TASK, price=PureDP("0.1"), budget=PureDP(1), randomiser=Symmetric(Fraction(1, 10)))
    check(pure, terms(pure))
    with pytest.raises(InputError, match="costs more than"):
        terms(replace(pure, randomiser=Symmetric(Fraction(11, 100))))


ENCODERS = {
    "two rows": Counts(LEVEL, AtMostRows(2)),
    "two cells": Counts(LEVEL, AtMostCells(2)),
    "one vote in parts": Counts(LEVEL, OneVote(8)),
    "two questions": Concatenation((Counts(LEVEL, AtMostRows(1)), Counts(LEVEL, AtMostRows(1))), (1, 1)),
    "one question in a stack": Concatenation((Counts(LEVEL, AtMostRows(1)),), (1,)),
    "a wavelet": HaarWavelet(TREE, 2, AtMostRows(1)),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_a_report_is_of_one_row_and_one_question(name):
    with pytest.raises(InputError, match="a single 1"):
        replace(TASK, question=Query(ENCODERS[name], Fraction(1, 10)))


@pytest.mark.parametrize(
    "changes",
    [
        {"randomiser": None},
        {"randomiser": Fraction(4)},
        {"randomiser": "Asymmetric"},
        {"randomiser": LEVEL},
        {"randomiser": Asymmetric(Fraction(10**600))},
        {"randomiser": Asymmetric(Fraction(65))},
        {"randomiser": Symmetric(Fraction(1, 10**40))},
        {"randomiser": Symmetric(Fraction(10**40 + 1, 10**40))},
        {"randomiser": UnaryEncoding(Fraction(10**8 + 1, 2 * 10**8), Fraction(1, 2))},
        {"price": PureDP("0.1")},
        {"price": PRICE, "budget": PureDP(1)},
        {"price": BUDGET},
        {"budget": ApproxDP(2, "1e-6")},
        {"price": ZCDP(ApproxDP(1, "1e-13").rho / 10), "budget": ApproxDP(1, "1e-13")},
    ],
    ids=str,
)
def test_a_task_of_reports_that_makes_no_sense_is_refused(changes):
    with pytest.raises(InputError):
        replace(TASK, **changes)


def test_a_task_without_reports_is_written_as_before_and_one_with_them_comes_back():
    assert "randomiser" not in codec.dumps(PLAIN)
    for task in (PLAIN, TASK, replace(TASK, randomiser=UnaryEncoding(Fraction(1, 2), Fraction(1, 3)))):
        assert codec.loads(codec.dumps(task), KNOWN, Task) == task
    text = codec.dumps(PLAIN)
    twice = text.replace('"purpose"', '"randomiser":null,"purpose"')
    assert twice != text
    with pytest.raises(CodecError, match="left out where it is None"):
        codec.loads(twice, KNOWN, Task)
    with pytest.raises(CodecError, match=r"Task\.randomiser is to be"):
        codec.loads(codec.dumps(TASK).replace("Asymmetric", "Sampling"), KNOWN, Task)
    assert codec.digest(PLAIN) != codec.digest(TASK)


@pytest.mark.parametrize("vector", [[0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 5, 0], [0, -1, 0], [9, 9, 9]], ids=str)
def test_whatever_a_persons_rows_are_they_send_one_report(vector):
    """Anything else than a single 1 is nothing at all: 600 reports, within 5 standard errors of either chance."""
    law, stream = Asymmetric(Fraction(4)), Stream.fixed(str(vector).encode())
    sent = np.array([randomised(law, np.array(vector), stream) for _ in range(600)])
    assert sent.dtype == np.int64 and set(np.unique(sent).tolist()) <= {0, 1}
    p, q = law.chances
    wanted = np.array([p if vector == [0, 1, 0] and place == 1 else q for place in range(3)])
    assert (np.abs(sent.mean(axis=0) - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / 600)).all()


def test_prices_of_reports_follow_the_cohort():
    prices = ReportPrices(BUDGET, COHORT, Fraction(8))
    assert prices.law(Fraction(1, 10), 10**6) == LAW and prices.people == 4_500
    stddev = prices.stddev(QUERY.encoder, Fraction(1, 10))
    assert prices.share(QUERY.encoder, stddev) <= Fraction(1, 10)
    for most in (Fraction(0), Fraction(65), Fraction(1, 33)):
        with pytest.raises(InputError, match="most local epsilon"):
            ReportPrices(BUDGET, COHORT, most)
    with pytest.raises(InputError, match="delta is 10"):
        ReportPrices(ApproxDP(1, "1e-13"), COHORT, Fraction(8))


def test_methods_of_several_rows_have_no_reports():
    from hazemap.engines.memory import MemoryTable
    from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation

    table = MemoryTable(np.arange(9), {"lon": np.zeros(9), "lat": np.zeros(9)})
    trust = SimulatedSecureAggregation(table, Cohort(9, 9), local_epsilon=Fraction(4))
    with pytest.raises((InputError, Unanswerable), match="single 1"):
        trust.answer(Query(ENCODERS["two rows"], 1), PureDP(1))


def intervals_that_hold(law, counts, believed=None, draws=2_000):
    """For each number of reports, how many of the 95 % intervals of these draws hold its truth."""
    people, held = int(counts.sum()), np.zeros(len(counts), dtype=np.int64)
    stream = Stream.fixed(b"intervals of reports")
    for _ in range(draws):
        found = debiased(law, law.sums(stream, counts, people), people, stream)
        stddev = found.stddev if believed is None else believed
        held += np.abs(found.sums - counts) <= np.ceil(reach(0.95, found.kurtosis) * stddev)
    return held


@pytest.mark.slow
@pytest.mark.parametrize("law", [Asymmetric(Fraction(4)), Symmetric(Fraction(1)), Asymmetric(Fraction(8))], ids=str)
def test_95_percent_intervals_of_reports_hold_the_truth(law):
    """Six standard deviations below 1,900 of 2,000: by chance in fewer than 10⁻⁶ of runs, were it 95 % exactly."""
    counts = np.array([600, 250, 100, 40, 9, 1, 0, 0], dtype=np.int64)
    held = intervals_that_hold(law, counts)
    assert held.min() > 1_900 - 6 * 9.75, held
    if isinstance(law, Asymmetric):  # a twin that must fail: as much noise as where nobody is
        alone = np.sqrt(law.variance(1_000, np.zeros(1))[0] + 0.25)
        assert intervals_that_hold(law, counts, believed=alone)[0] < 1_800
