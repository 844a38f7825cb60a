"""Every method of sums on every trust model, simulated, and recipes by whoever may carry them: or refused in words."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.issuing import ISSUER
from tests.test_one_voice import BOX, NAMES, ONE, cells_of, town

from hazemap.algorithms import Adaptive
from hazemap.errors import InputError, Unanswerable
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.features import Categories, Feature
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.population_table import PopulationTable
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_bins import RecipeBins
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.in_memory_secure_aggregation import RecipeSecureSums, SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.federated.trust.one_report import OneReportTrust
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import ByOneReport, ByShuffler, ByTwoServers, CarriedTask
from hazemap.federated.trust.shuffled import ShuffledParts, ShuffledReports
from hazemap.federated.trust.two_server_tasks import round_tasks
from hazemap.federated.trust.two_servers import TwoServers
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.queries.noisy_queries import Query
from hazemap.specs.method_from_name import method_from_name, sums_only
from hazemap.trust.curator import Curator

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
    "one report": lambda stream: OneReportTrust(TOWN, EVERYBODY, 6, stream),
    "two servers, randomised": lambda stream: TwoServers(TOWN, EVERYBODY, stream, local_epsilon=Fraction(4)),
    "shuffled parts": lambda stream: ShuffledParts(TOWN, EVERYBODY, stream),
    "local reports": lambda stream: LocalReports(TOWN, PEOPLE, stream=stream),
}
STACKS = {"sketch", "hierarchical:3", "geometric:3", "privlet:3"}
STACKED = STACKS | {"hb:3", "hb-least:3"}
REFUSED = {
    "two servers": {"privlet:3", "geometric:3"},  # wavelets add and take away; weights
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


WORDS, URLS = ("so", "be", "it"), ("https://one.example/", "https://two.example/")
TYPED = ["so"] * 300 + ["be"] * 200 + ["it"] * 100


def recipe(carrier):
    return Recipe(
        "words", 1, "keyboard", "which words are typed", SqlQuery("SELECT word FROM keyboard"), (),
        (Feature("word", Categories(WORDS)),), Fraction(6), Fraction(6), Fraction(1, 10**6), 400, carrier,
    )  # fmt: skip


def by_secure_sums(task):
    """A session of everybody is offered: its noise is that of their reports."""
    assert task.noise(PEOPLE).parties == PEOPLE


CARRIERS = {
    "secure sums": by_secure_sums,
    "two servers": lambda task: round_tasks(CarriedTask(task, ByTwoServers(*URLS, 400), "ab" * 32, 0), ISSUER.public),
    "one report": lambda task: CarriedTask(task, ByOneReport(*URLS, 400, 4), "ab" * 32, 0),
    "shuffled parts": lambda task: CarriedTask(task, ByShuffler(URLS[0], 400, 64 * "0"), "ab" * 32, 0),
    "shuffled reports": lambda task: CarriedTask(task, ByShuffler(URLS[0], 400, 64 * "0", Fraction(6)), "ab" * 32, 0),
}


@pytest.mark.parametrize("carried", CARRIERS)
@pytest.mark.parametrize("said", list(Carrier))
def test_a_recipe_is_carried_by_whom_it_says_or_refused_in_words(said, carried):
    cohort = Cohort(PEOPLE, PEOPLE, Fraction(0), Fraction(0), mode=Mode.SEMI_HONEST)
    task = Task.asking(recipe(said), "study", 1, cohort)
    if said.value == carried:
        CARRIERS[carried](task)
        return
    with pytest.raises(InputError, match=r"carried by|summed by"):
        CARRIERS[carried](task)


@pytest.mark.parametrize("carried", ["secure sums", "two servers"])
def test_a_recipe_has_an_answer_with_its_law_whoever_carries_it(carried):
    table = PopulationTable.of_people(np.arange(PEOPLE), (TYPED,))
    asked, few = recipe(Carrier(carried)), 60
    if carried == "secure sums":  # the real protocol, so of fewer people
        small = replace(asked, minimum_cohort=few)
        some = PopulationTable.of_people(np.arange(few), (TYPED[::10],))
        cohort = Cohort(few, few, Fraction(0), Fraction(0), mode=Mode.SEMI_HONEST)
        answer, scale = RecipeSecureSums(some, cohort, Stream.fixed(b"sums")).answer(small), 10
    else:
        trust = TwoServers(table, EVERYBODY, Stream.fixed(b"two"), local_epsilon=asked.local_epsilon)
        answer, scale = trust.answer(Query(RecipeBins(asked), Fraction(1)), PureDP(6)), 1
    truth = np.array([0, 300, 200, 100, 0]) / scale
    # Five numbers beyond 8 standard deviations: with probability below 10^-13
    assert np.abs(answer.sums - truth).max() < 8 * answer.stddev.max() + 1
    assert answer.people == PEOPLE // scale and answer.chances is not None
