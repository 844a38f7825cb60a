"""Every method of sums on every trust model, simulated: it runs unchanged, or is refused in words."""

from fractions import Fraction

import numpy as np
import pytest
from tests.test_one_voice import BOX, NAMES, ONE, cells_of, town

from hazemap.algorithm_session import Unrecorded, replay, run
from hazemap.algorithms import Adaptive
from hazemap.errors import InputError, Unanswerable
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.specs.method_from_name import method_from_name, sums_only
from hazemap.trust.cohort_assumptions import Cohort
from hazemap.trust.curator import Curator
from hazemap.trust.local import LocalReports
from hazemap.trust.one_report import OneReport
from hazemap.trust.report_batch import ReportBatch
from hazemap.trust.shuffled import Shuffled, ShuffledReports
from hazemap.trust.simulated_secure_aggregation import SimulatedSecureAggregation
from hazemap.trust.two_servers import TwoServers

PEOPLE = 600
TOWN, EVERYBODY = town(PEOPLE), ReportBatch(PEOPLE, PEOPLE)
PURE, APPROXIMATE = PureDP(4), ApproxDP(8, "1e-6")
SUMS = [name for name in NAMES if sums_only(method_from_name(name, cells_of(name), BOX, ONE, PureDP(1)))]
TRUSTS = {
    "curator": lambda stream: Curator(TOWN, stream),
    "secure sums": lambda stream: SimulatedSecureAggregation(
        TOWN, Cohort(PEOPLE, PEOPLE, Fraction(0), Fraction(0)), stream
    ),
    "two servers": lambda stream: TwoServers(TOWN, EVERYBODY, stream),
    "one report": lambda stream: OneReport(TOWN, EVERYBODY, 6, stream),
    "two servers, randomised": lambda stream: TwoServers(TOWN, EVERYBODY, stream, local_epsilon=Fraction(4)),
    "shuffled parts": lambda stream: Shuffled(TOWN, EVERYBODY, stream),
    "local reports": lambda stream: LocalReports(TOWN, PEOPLE, stream=stream),
}
STACKS = {"sketch", "hierarchical:3", "geometric:3", "privlet:3"}
STACKED = STACKS | {"hb:3", "hb-least:3"}
REFUSED = {
    "two servers": {"privlet:3"},  # wavelets add and take away
    "one report": {"privlet:3", "sketch", "adaptive-grid", "uniform-grid", "htf+"},  # their cells are no known tree
    "two servers, randomised": STACKED,  # several 1s a person
    "local reports": STACKS,
    "shuffled reports": STACKED,
}


def test_the_matrix_has_all_methods_of_sums():
    assert len(SUMS) >= 20
    assert set().union(*REFUSED.values()) <= set(SUMS)


def answered(name, trust, budget, made):
    """The numbers of a run, which is replayed from its transcript; `None` where it was refused."""
    method = method_from_name(name, cells_of(name), BOX, ONE, PureDP(1))
    if trust == "one report" and isinstance(method, Adaptive):
        method = Adaptive.for_one_report(method.tree, method.bounding)
    if name in REFUSED.get(trust, ()):
        with pytest.raises((Unanswerable, InputError), match=r"ask|choose|bound"):
            run(method, made, budget, Unrecorded())
        return
    result = run(method, made, budget, Unrecorded())
    again = replay(method, made.prices(budget), budget, result.transcript)
    assert np.array_equal(result.value.values, again.value.values)
    assert all(len(exchange.answer.sums) == exchange.question.size for exchange in result.transcript)
    if trust in ("curator", "secure sums", "two servers", "shuffled parts") and not name.startswith(("pyramid", "top")):
        assert result.value.unbiased.sum() == pytest.approx(PEOPLE, abs=150)


@pytest.mark.parametrize("trust", TRUSTS)
@pytest.mark.parametrize("name", SUMS)
def test_a_method_runs_or_is_refused_in_words(name, trust):
    answered(name, trust, PURE, TRUSTS[trust](Stream.fixed(f"{name} {trust}".encode())))


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMS)
def test_a_method_runs_on_shuffled_reports_or_is_refused_in_words(name):
    made = ShuffledReports(TOWN, EVERYBODY, APPROXIMATE, Stream.fixed(name.encode()))
    answered(name, "shuffled reports", APPROXIMATE, made)
