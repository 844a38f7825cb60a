"""What follows from a round over two servers: its tasks, its noise, and nothing that anybody could choose."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.issuing import ISSUER

from hazemap.cells import Leaves
from hazemap.codec import dumps, loads
from hazemap.encoders import Concatenation, CountMinSketch, Counts
from hazemap.encoders.encoder import total
from hazemap.engines.memory import MemoryTable
from hazemap.errors import CodecError, InputError, Unanswerable
from hazemap.federated.device.reports.report_routes import one_hot, person_path
from hazemap.federated.protocols.dap.vdaf_configuration import MultihotConfiguration
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import CARRIED, ByOneReport, ByShuffler, ByTwoServers, CarriedTask
from hazemap.federated.trust.two_server_tasks import batch_interval, round_noise, round_tasks, walk_task, whole_tree
from hazemap.federated.trust.two_servers import TwoServers, vectors
from hazemap.privacy.budget import PureDP
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows

TREE = Quadtree.world(depth=3)
ONE, TWO = "https://one.example/", "https://two.example/"
BEGUN = 1_800_000_000


def counts(level=1, rows=1):
    return Counts(Leaves.at_level(TREE, level), AtMostRows(rows))


def carried(encoder=None, share=Fraction(1, 3), budget=Fraction(1), carrier=None, **changes):
    whole = PureDP(budget)
    question = Query(encoder or counts(), share)
    task = Task("homes", "a map", 1, question, whole.part(share), whole, Cohort(300, 300))
    made = CarriedTask(task, carrier or ByTwoServers(ONE, TWO, 200), "ab" * 32, BEGUN)
    return replace(made, **changes)


ENCODERS = {
    "counts": counts(),
    "levels": Concatenation((counts(1), counts(2)), (1, 1)),
    "stack of stacks": Concatenation((Concatenation((counts(1), counts(1)), (1, 1)), counts(2)), (1, 1)),
    "sketch": CountMinSketch(TREE, 2, width=5, rows=3, bounding=AtMostRows(1)),
}


@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
def test_noise_covers_every_person_whatever_their_rows_are(encoder):
    """By force: a device with each row, or none: what it moves in all tasks, times 1/scale, is within the price."""
    round_ = carried(encoder)
    tasks, sizes = round_tasks(round_, ISSUER.public), vectors(encoder)
    reports = [one_hot(np.zeros(encoder.size, dtype=np.int64), sizes)]
    for lon, lat in product((-170, -80, 10, 100), (-70, -10, 10, 70)):
        table = MemoryTable(np.zeros(1, dtype=np.int64), {"lon": np.array([lon]), "lat": np.array([lat])})
        reports.append(one_hot(total(encoder, table), sizes))
    nobody = reports[0]
    assert not any(map(any, nobody))
    costs = []
    for report in reports:
        cost = Fraction(0)
        for task, own, none in zip(tasks, report, nobody, strict=True):
            assert isinstance(task.measured, MultihotConfiguration) and task.measured.length == len(own)
            assert sum(own) <= task.measured.max_weight == 1
            cost += sum(a != b for a, b in zip(own, none, strict=True)) / task.privacy.noise.scale
        costs.append(cost)
    assert max(costs) == round_.task.price.epsilon  # and no more: what was paid is what was bought


@pytest.mark.parametrize(
    "changes",
    [
        {"batch": "cd" * 32},
        {"begun": BEGUN + 10**7},
        {"carrier": ByTwoServers(ONE, TWO, 199)},
        {"carrier": ByTwoServers(TWO, ONE, 200)},
    ],
)
def test_nothing_of_a_round_can_be_changed_without_its_tasks(changes):
    [before], [after] = round_tasks(carried(), ISSUER.public), round_tasks(carried(**changes), ISSUER.public)
    assert before.configuration != after.configuration


def test_a_round_is_bound_into_its_tasks_to_the_last_word():
    before = carried()
    other = replace(before, task=replace(before.task, purpose="a map of something else"))
    assert round_tasks(before, ISSUER.public)[0].info != round_tasks(other, ISSUER.public)[0].info
    assert round_tasks(loads(dumps(before), CARRIED, CarriedTask), ISSUER.public) == round_tasks(before, ISSUER.public)


REFUSED = {
    "weights": Concatenation((counts(1), counts(2)), (1, 2)),
    "weights below": Concatenation((Concatenation((counts(1), counts(1)), (2, 2)), counts(2)), (1, 1)),
    "two rows": counts(rows=2),
    "too many": Concatenation((counts(),) * 17, (1,) * 17),
}


@pytest.mark.parametrize("encoder", [*ENCODERS.values(), *REFUSED.values()], ids=[*ENCODERS, *REFUSED])
def test_a_simulation_refuses_what_tasks_refuse_and_nothing_else(encoder):
    town = MemoryTable(np.arange(300), {"lon": np.full(300, 10.0), "lat": np.full(300, 10.0)})
    simulated, refused = TwoServers(town, ReportBatch(300, 200)), encoder in REFUSED.values()
    for ask in (
        lambda: round_tasks(carried(encoder), ISSUER.public),
        lambda: simulated.answer(Query(encoder, 1), PureDP(1)),
    ):
        if refused:
            with pytest.raises(Unanswerable, match=r"choose another|bound each"):
                ask()
        else:
            ask()


def test_two_vectors_of_a_round_are_two_tasks():
    first, second = round_tasks(carried(ENCODERS["levels"]), ISSUER.public)
    assert first.id != second.id and (first.measured.length, second.measured.length) == (4, 16)
    assert batch_interval(carried()) == first.interval


def test_noise_that_cannot_be_written_is_a_little_wider_and_never_less():
    round_ = carried(budget=Fraction((1 << 70) + 1, 1 << 70))
    exact = 1 / round_.task.price.epsilon
    scale = round_noise(round_).each.scale
    assert exact <= scale < exact + Fraction(1, 1 << 20)
    assert round_tasks(round_, ISSUER.public)[0].privacy.noise.scale == scale


@pytest.mark.parametrize(
    ("encoder", "why"),
    [
        (counts(rows=2), "one row"),
        (Concatenation((counts(1), counts(2)), (1, 3)), "weights"),
        (Concatenation((counts(1),) * 17, (1,) * 17), "at most 16"),
    ],
)
def test_what_reports_of_a_single_1_cannot_answer_is_refused(encoder, why):
    with pytest.raises(Unanswerable, match=why):
        round_tasks(carried(encoder), ISSUER.public)


def test_a_price_that_buys_no_noise_that_can_be_drawn_is_refused():
    with pytest.raises(Unanswerable, match="cannot be drawn"):
        round_tasks(carried(budget=Fraction(1, 1 << 80)), ISSUER.public)


@pytest.mark.parametrize(
    "sums", [[2, 0, 0, 0], [1, 1, 0, 0], [-1, 0, 0, 0], [1, -1, 1, 0]], ids=["two", "twice", "less", "sum of 1"]
)
def test_a_vector_that_is_no_single_1_is_reported_as_nobodys(sums):
    assert one_hot(np.array(sums), (4,)) == [[False] * 4]


WHOLE = ByOneReport(ONE, TWO, 200, levels=3)


def whole(**changes):
    budget = PureDP(1)
    task = Task("homes", "a map", 1, whole_tree(TREE, AtMostRows(1)), budget, budget, Cohort(300, 300))
    return CarriedTask(replace(task, **changes), WHOLE, "ab" * 32, BEGUN)


def test_one_report_is_made_for_the_whole_price_and_so_many_levels():
    task = walk_task(whole(), ISSUER.public)
    assert (task.walk.budget, task.walk.levels, task.measured.bits) == (PureDP(1), 3, 8)
    assert task.min_batch_size == 200


@pytest.mark.parametrize(("made", "tasks"), [(carried, lambda *of: round_tasks(*of)[0]), (whole, walk_task)])
def test_devices_of_two_servers_in_one_process_that_hear_the_same_words_each_name_their_own_issuer(made, tasks):
    said = made()
    assert [tasks(said, bytes([each]) * 32).admission.issuer[0] for each in (1, 2, 1)] == [1, 2, 1]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: whole(round=2), "asked once"),
        (lambda: whole(question=Query(counts(), Fraction(1))), "whole tree"),
        (lambda: whole(question=whole_tree(TREE, AtMostRows(2))), "one row"),
        (carried, "another carrier"),
        (lambda: carried(carrier=ByShuffler(ONE, 200, 64 * "0")), "another carrier"),
    ],
)
def test_one_report_for_anything_else_is_refused(wrong, why):
    with pytest.raises((InputError, Unanswerable), match=why):
        walk_task(wrong(), ISSUER.public)
    with pytest.raises(InputError, match="another carrier"):
        round_tasks(whole(), ISSUER.public)


def test_a_path_is_that_of_one_cell_or_of_nowhere():
    def rows(*places):
        lon, lat = (np.array(each) for each in zip(*places, strict=True)) if places else (np.zeros(0), np.zeros(0))
        return lambda: MemoryTable(np.zeros(len(places), dtype=np.int64), {"lon": lon, "lat": lat})

    here = person_path(TREE, AtMostRows(1), rows((10.0, 10.0)))
    assert here[1] is None and here[0] < 128
    assert person_path(TREE, AtMostRows(1), rows()) == (128, None)
    assert person_path(TREE, AtMostRows(2), rows((10.0, 10.0), (-100.0, 10.0))) == (128, "more than one cell")


@pytest.mark.parametrize("field", ["batch", "begun", "carrier", "task"])
def test_an_announcement_with_another_field_is_none(field):
    text = dumps(carried()).replace(f'"{field}"', '"something"', 1)
    with pytest.raises(CodecError):
        loads(text, CARRIED, CarriedTask)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"batch": "AB" * 32}, "hexadecimal"),
        ({"batch": "ab" * 31}, "hexadecimal"),
        ({"begun": -1}, "a time"),
        ({"carrier": ByTwoServers(ONE, TWO, 301)}, "more reports than people"),
    ],
)
def test_an_announcement_that_cannot_be_is_refused(changes, why):
    with pytest.raises(InputError, match=why):
        carried(**changes)
