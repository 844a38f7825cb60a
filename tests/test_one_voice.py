"""What a statement says was learned is what was asked: for every method by its name, and every trust model."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from tests.every_method import LEVELLED, WHOLE

import hazemap
from hazemap.algorithms import METHODS as CLASSES
from hazemap.algorithms import OF_VALUES, Adaptive, AdaptiveGrid, LocateBox, PrivateBoundingBox
from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import Counts, EvenSplitScores, MedianSplitScores, SplitCosts
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapWarning, InputError
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.privacy_statement import prices, statement
from hazemap.federated.trust.cohort_assumptions import Cohort, SecureSumPrices
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.lab.methods import KDTree
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.statement import A_PERSON
from hazemap.privacy.statement_facts import Randomness
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Growth, Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.method_from_name import method_from_name, sums_only
from hazemap.specs.parsing import QuadtreeCells
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.specs.table_spec import TableSpec
from hazemap.statement_builder import Promise, stated
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.trust.curator import Curator

BOX, ONE = Box(2.2, 48.8, 2.5, 48.9), AtMostRows(1)
NAMES = (
    *WHOLE,
    *(name if name == "singular" else f"{name}:3" for name in LEVELLED),
    "pyramid:20",
    "top:5",
    "htf:T=all",
)
HOW = {
    MedianSplitScores: Learned.MEDIANS,
    EvenSplitScores: Learned.EVENNESS,
    SplitCosts: Learned.COSTS,
    Growth: Learned.GROWTH,
}


def cells_of(name):
    return QuadtreeCells(3 if name == "singular" else 7)


def town(people=3_000):
    rng = np.random.default_rng(1)
    return MemoryTable(
        np.arange(people), {"lon": rng.normal(2.35, 0.03, people), "lat": rng.normal(48.85, 0.01, people)}
    )


TRUSTS = {
    "curator": lambda: Curator(town(), Stream.fixed(b"voice")),
    "secure sum": lambda: SimulatedSecureAggregation(
        town(), Cohort(2_000, 1_000, dropout=Fraction(0), corrupt=Fraction(1, 10)), Stream.fixed(b"voice")
    ),
    "local": lambda: LocalReports(town(), 3_000, stream=Stream.fixed(b"voice")),
}


def asked_for_people(question):
    """Whether a question counts everybody: its cells are the root, and no other place."""
    if not isinstance(question, Query) or not isinstance(question.encoder, Counts):
        return False
    cells = question.encoder.cells
    places = cells.cells[cells.cells != NOWHERE] if isinstance(cells, Leaves) else np.zeros(0, np.uint64)
    return len(places) > 0 and np.array_equal(np.sort(places), cells.tree.root)


def claims_and_questions(name, trust):
    method = method_from_name(name, cells_of(name), BOX, ONE, PureDP(1))
    if trust != "curator" and not sums_only(method):
        pytest.skip("only a curator can answer it")
    try:
        transcript = run(method, TRUSTS[trust](), PureDP(4), Unrecorded()).transcript
    except hazemap.errors.Unanswerable:
        pytest.skip("one person's 1 in one place is too little for it")
    return method.disclosure.learned, [each.question for each in transcript]


@pytest.mark.parametrize("trust", TRUSTS)
@pytest.mark.parametrize("name", NAMES)
def test_fault_3_a_statement_claims_what_the_transcript_holds(name, trust):
    """`htf` said permute-and-flip where noisy cut costs were asked; `fitted-level` hid the number of people."""
    learned, questions = claims_and_questions(name, trust)
    kinds = {type(getattr(question, "scores", question)) for question in questions}
    assert {how for how in HOW.values() if how in learned} == {HOW[kind] for kind in kinds & HOW.keys()}
    if name != "total":  # everybody is its one cell
        assert (Learned.PEOPLE in learned) == any(map(asked_for_people, questions))
    assert learned[-1] is Learned.NUMBERS
    assert Learned.BOX not in learned


FIXED = ("flat", "hierarchical", "geometric", "hb", "hb-least", "privlet", "singular", "laplace-clip", "top", "total")


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_said_to_be_chosen_where_answers_choose_them(name):
    """Two tables of other people: the cells of a method that claims nothing of their fineness are the same."""
    method = method_from_name(name, cells_of(name), BOX, ONE, PureDP(1))
    assert (Learned.FINENESS in method.disclosure.learned) == (name.partition(":")[0] not in FIXED)


@pytest.mark.parametrize("name", NAMES)
def test_curators_and_devices_say_the_same_of_a_method(name):
    """The words were written twice: a `hierarchical` campaign claimed what the curator's did not."""
    spec = ReleaseSpec(TableSpec(None), PureDP(1), ONE, name, cells_of(name), BOX, dataset="town")
    said = spec.statement("town")
    if not sums_only(spec.algorithm):
        return
    cohort = Cohort(2_000, 1_000)
    ours = statement(Campaign("homes", "a map", "town", spec.algorithm, PureDP(1), cohort))
    assert ours.charged == said.charged
    assert ours.learned == said.learned == tuple(each.name.lower() for each in spec.algorithm.disclosure.learned)
    assert sum("the box" in line for line in (*ours.public, *ours.charged)) == 1
    assert sum("the box" in line for line in (*said.public, *said.charged)) == 1
    assert prices(ours) == SecureSumPrices(PureDP(1), cohort), "read from data, not from a sentence"


def test_fault_3_a_box_that_was_found_is_paid_for_once_and_not_public():
    found = PrivateBoundingBox(Adaptive(Quadtree.world(0)))
    ours = statement(Campaign("homes", "a map", "town", found, PureDP(1), Cohort(2_000, 1_000)))
    said = ReleaseSpec(TableSpec(None), PureDP(1), dataset="town").statement("town")
    for each in (ours, said):
        assert not any("box" in line for line in each.public)
        assert [line for line in each.charged if "box" in line] == [Learned.BOX.value]
        assert each.learned.count("box") == 1


def test_what_a_method_was_told_of_the_number_of_people_is_public_and_not_bought():
    tree = Quadtree.around(BOX, 7)
    for method in (AdaptiveGrid(tree, people=1_000), KDTree(tree, people=1_000)):
        assert Learned.PEOPLE not in method.disclosure.learned
        assert any("about 1,000 people" in line for line in method.disclosure.public)
    assert KDTree(tree, people=1_000, cuts=4).disclosure.public == ()


def test_every_method_that_a_release_may_name_says_what_it_learns():
    for method in (*CLASSES, *(each for each in OF_VALUES if hasattr(each, "rounds"))):
        # `TwoStageStatistics` speaks for its parts
        if method.__name__ not in ("PrivateValueBounds", "PartitionSelection"):
            assert isinstance(method.disclosure, (property, Disclosure)), method
    assert LocateBox().disclosure.learned == (Learned.BOX,)


def test_a_box_is_not_both_declared_and_found():
    promise = Promise("x", A_PERSON, "one", PureDP(1), ONE, "curator", (), "x")
    with pytest.raises(InputError, match="declared or found"):
        stated(promise, LocateBox().disclosure, box=BOX)
    with pytest.raises(InputError, match="a statement must list everything that was learned exactly"):
        stated(promise, LocateBox().disclosure, details={Learned.BOUNDS: "x"})


def test_fault_3_a_release_names_its_id_column_and_where_its_noise_came_from(tmp_path):
    """A release with a fixed test stream said that the system's randomness was used, and none named the id column."""
    people = town()
    table = pa.table({"user": people.person, "lon": people.columns["lon"], "lat": people.columns["lat"]})
    for stream, randomness in ((None, Randomness.SYSTEM), (Stream.fixed(b"test"), Randomness.TEST_STREAM)):
        ledger, file = Ledger(tmp_path / f"{randomness.name}.sqlite"), tmp_path / f"{randomness.name}.parquet"
        made = hazemap.release(
            table, epsilon=1, box=BOX, method="flat:2", dataset="town", ledger=ledger, output=file, stream=stream
        )
        for said in (made.statement, hazemap.Release.open(file).statement, ledger.history()[0].statement):
            assert said.circumstances == made.statement.circumstances
            assert said.circumstances.randomness is randomness
            unit = said.circumstances.unit
            assert (unit.id_column, unit.read_as, unit.guessed) == ("user", "whole numbers", True)
            assert "told apart by the column 'user', read as whole numbers, guessed by its name" in said.text()
            assert ("the system's randomness" in said.text()) == (stream is None)
            assert ("NOBODY IS PROTECTED" in said.text()) == (stream is not None)


def test_devices_name_their_own_randomness():
    ours = statement(
        Campaign(
            "homes", "a map", "town", method_from_name("flat:3", QuadtreeCells(7), BOX, ONE), PureDP(1), Cohort(99, 99)
        )
    )
    assert (ours.circumstances.unit, ours.circumstances.randomness) == (DEVICE, Randomness.DEVICES)
    lost = replace(ours.circumstances.cohort, mode="OTHER")
    with pytest.raises(InputError, match="does not know"):
        prices(replace(ours, circumstances=replace(ours.circumstances, cohort=lost)))


pytestmark = pytest.mark.filterwarnings(f"ignore::{HazemapWarning.__module__}.{HazemapWarning.__name__}")


def test_where_each_row_is_a_person_no_statement_assumes_an_id(tmp_path):
    people, ledger = town(), Ledger(tmp_path / "ledger.sqlite")
    table = pa.table({"lon": people.columns["lon"], "lat": people.columns["lat"]})
    made = hazemap.release(
        table, epsilon=1, box=BOX, method="flat:2", bounding="rows are people", dataset="town", ledger=ledger
    )
    said = " ".join(made.statement.assumptions)
    assert "gives each person one id" not in said
    assert "nobody has more than one row: who has k is protected as a group of k is" in said


def test_a_statement_says_declared_bounds_to_the_last_digit():
    spec = StatisticsSpec(
        TableSpec("a.csv"), PureDP(1), "pay", -0.30000000000000004, 1234567.5, box=BOX, quantiles=(0.99999995,)
    )
    said = spec.statement("a").public
    assert any("the bounds of 'pay', -0.30000000000000004 to 1234567.5, as declared" in each for each in said)
    assert any("quantiles 0.99999995" in each for each in said)
