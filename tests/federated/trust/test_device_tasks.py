"""What a device agrees to, and that nothing else can be slipped under it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hazemap import codec
from hazemap.cells import Leaves
from hazemap.encoders import Concatenation, CountMinSketch, Counts, QuantileScores
from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.protocols.secure_aggregation.minimum_parameters import MinimumParameters
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.device_tasks import KNOWN, Task, check, parameters_for
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.queries.noisy_queries import Choice, Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Outside, RowIsPerson

TREE = Quadtree.world(depth=6)
LEVEL = Leaves.at_level(TREE, 3)
QUERY = Query(Counts(LEVEL, AtMostRows(2)), Fraction(1, 10))
COHORT = Cohort(5_000, 1_000, Fraction(1, 10), Fraction(1, 20), mode=Mode.SEMI_HONEST)
TASK = Task("homes", "a map", 1, QUERY, PureDP("0.1"), PureDP(1), COHORT)
ROSTER, GRAPH, NONCE = b"r" * 32, b"g" * 32, b"n" * 32


def terms(task=TASK, clients=1_000):
    return parameters_for(task, ROSTER, clients, bytes(32) if task.cohort.mode is Mode.MALICIOUS else GRAPH, NONCE)


def test_the_parameters_of_a_session_follow_from_its_task():
    offered = terms()
    assert offered.task == bytes.fromhex(codec.digest(TASK))
    assert offered.survivors == 900
    assert offered.noise == DistributedNoise(
        Fraction(20), 850
    )  # two rows at ε = 1/10, from those who survive and are honest
    assert offered.size == 64
    assert 2 ** (offered.bits - 1) > 1_000 * 2
    check(TASK, offered)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("clients", [40, 41, 333])
def test_a_smaller_shard_has_parameters_of_its_own(mode, clients):
    task = replace(TASK, cohort=Cohort(5_000, 1_000, Fraction(1, 20), Fraction(1, 20), mode=mode))
    offered = terms(task, clients)
    assert offered.clients == clients
    assert offered.noise.parties == task.cohort.honest(clients)
    check(task, offered)


CHANGES = {
    "mode": Mode.MALICIOUS,
    "task": b"another task's digest, 32 bytes.",
    "clients": 999,
    "degree": 40,
    "threshold": 10,
    "survivors": 899,
    "size": 63,
    "bits": 20,
    "noise": DistributedNoise(Fraction(20), 851),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_device_refuses_a_session_with_one_parameter_changed(name):
    changed = {name: CHANGES[name]} | ({"graph": bytes(32)} if name == "mode" else {})
    offered = replace(terms(), **changed)
    with pytest.raises(Refused, match="does not follow from its task"):
        check(TASK, offered)


@pytest.mark.parametrize("noise", [DistributedNoise(Fraction(19), 850), DistributedNoise(Fraction(21), 850)], ids=str)
def test_a_device_refuses_another_scale_of_noise(noise):
    with pytest.raises(Refused, match="noise does not follow"):
        check(TASK, replace(terms(), noise=noise))


OTHERS = {
    "campaign": "hotels",
    "purpose": "another map",
    "round": 2,
    "question": Query(
        Counts(
            LEVEL,
            AtMostRows(2, Outside.COUNT),
        ),
        Fraction(1, 10),
    ),
    "cohort": replace(COHORT, sampling=Sampling.ONE),
}


def test_a_task_asks_everybody():
    with pytest.raises(InputError, match="not a part of a cohort"):
        replace(TASK, question=replace(TASK.question, cohort=1))


@pytest.mark.parametrize("name", OTHERS)
def test_a_session_belongs_to_the_whole_task(name):
    with pytest.raises(Refused, match="task does not follow"):
        check(replace(TASK, **{name: OTHERS[name]}), terms())


def test_a_shard_larger_than_the_task_says_is_refused():
    wider = replace(TASK, cohort=replace(COHORT, shard=2_000))
    with pytest.raises(Refused, match="at most 1000"):
        check(TASK, terms(wider, 1_001))


def test_a_shard_too_small_for_anybodys_secrets_is_refused():
    cohort = Cohort(900, 100, Fraction(1, 20), Fraction(1, 4), mode=Mode.MALICIOUS)
    task = replace(TASK, cohort=cohort)
    with pytest.raises(InputError, match="no degree and threshold"):
        terms(task, 2)
    few = {"clients": 2, "degree": 1, "threshold": 1, "survivors": 2, "noise": DistributedNoise(Fraction(20), 2)}
    with pytest.raises(Refused, match="what this task promises"):
        check(task, replace(terms(task, 100), **few))


@pytest.mark.parametrize("budget", [ZCDP("0.5"), ApproxDP(1, "1e-6")], ids=str)
def test_only_pure_epsilon_can_be_spent(budget):
    for changed in ({"budget": budget}, {"price": budget.part(Fraction(1, 10))}):
        with pytest.raises(InputError, match="give epsilon alone"):
            replace(TASK, **changed)


@pytest.mark.parametrize(
    "wrong",
    [
        {"price": PureDP("0.09")},
        {"budget": PureDP(2)},
        {"round": 0},
        {"round": "1"},
        {"campaign": ""},
        {"purpose": 3},
        {"question": Choice(QuantileScores(LEVEL, (Fraction(1, 2),)), Fraction(1, 10))},
        {"question": Query(Counts(LEVEL, RowIsPerson()), Fraction(1, 10))},
        {"question": Query(Counts(Box(0, 0, 1, 1), AtMostRows(1)), Fraction(1, 10))},
        {"question": Query(QuantileScores(LEVEL, (Fraction(1, 2),)), Fraction(1, 10))},
        {"question": Query(Concatenation((Counts(LEVEL), Counts(LEVEL, RowIsPerson())), (1, 1)), Fraction(1, 10))},
        {"cohort": None},
    ],
    ids=str,
)
def test_what_is_no_task_is_refused(wrong):
    with pytest.raises(InputError):
        replace(TASK, **wrong)


def test_a_task_that_lies_about_its_price_does_not_survive_the_wire():
    text = codec.dumps(TASK).replace(
        '"price":{"PureDP":{"epsilon":{"fraction":"1/10"}}}', '"price":{"PureDP":{"epsilon":{"fraction":"1/100"}}}'
    )
    assert "1/100" in text
    with pytest.raises(CodecError, match="costs"):
        codec.loads(text, KNOWN)


def test_a_sketch_can_be_asked_for():
    sketch = CountMinSketch(TREE, 6, 100, 3, AtMostRows(2))
    offered = terms(replace(TASK, question=Query(sketch, Fraction(1, 10))))
    assert offered.noise.scale == 3 * 2 * 10


def test_a_stack_of_votes_has_room_for_all_of_them():
    stack = Concatenation((Counts(LEVEL, OneVote(64)), Counts(Leaves(TREE, np.array(TREE.root)), OneVote(64))), (1, 3))
    offered = terms(replace(TASK, question=Query(stack, Fraction(1, 10))))
    assert offered.noise.scale == 4 * 64 * 10
    assert offered.size == 65
    assert 2 ** (offered.bits - 1) > 1_000 * 4 * 64


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("clients", [20, 57, 400, 1_000])
def test_who_insists_on_as_much_as_the_cohort_says_takes_part(mode, clients):
    corrupt = Fraction(1, 20)
    cohort = Cohort(20_000, 1_000, Fraction(1, 10), corrupt, mode=mode)
    offered = terms(replace(TASK, cohort=cohort), clients)
    MinimumParameters(clients=20, survivors=10, corrupt=corrupt, modes=frozenset(Mode)).check(offered)
    with pytest.raises(Refused):
        MinimumParameters(clients=20, survivors=10, corrupt=Fraction(1, 4), modes=frozenset(Mode)).check(offered)
