"""Reports that other servers carry: what a device refuses, what it pays, and that it pays once."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from tests.federated.device.room import TREE, settle
from tests.federated.shuffler.test_shuffler_route import CARRIED, RULES, SERVER, URL, Wire, reporting, told
from tests.issuing import ISSUER, given

from hazemap.cells import Leaves
from hazemap.codec import dumps
from hazemap.encoders import Counts
from hazemap.errors import Unreachable
from hazemap.federated.aggregator.hpke_key_ring import SUITE
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.account_clock import AccountClock
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.device_account import CANNOT, DeviceAccount
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.reports.dap_report_upload import ReportConnections
from hazemap.federated.device.reports.report_routes import RoundReportRoute
from hazemap.federated.device.reports.report_sender import CHANGED, LEFT, ReportSender
from hazemap.federated.device.server_task import ServerTask
from hazemap.federated.device.store.encrypted_store import CommitQueue, EncryptedStore
from hazemap.federated.device.store.row_store import RowStore
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfig, HpkeConfigList
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.report_carriers import ANNOUNCED, ByOneReport, ByShuffler, ByTwoServers, CarriedTask
from hazemap.federated.trust.two_server_tasks import whole_tree
from hazemap.privacy.budget import PureDP
from hazemap.queries.noisy_queries import Query
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.vdaf.hpke import HpkeKeyPair

ONE, TWO, THREE = (f"https://{name}.example/" for name in ("one", "two", "three"))
PINNED = ISSUER.public.hex()
POLICY = Policy(aggregators=(ONE, TWO))
BUDGET = PureDP(1)


class Server:
    """An aggregator that shows a key, and takes reports while it is `there`."""

    def __init__(self):
        pair = HpkeKeyPair.derived(SUITE.kem, bytes(32))
        self.config = HpkeConfig(7, SUITE.kem, SUITE.kdf, SUITE.aead, pair.public)
        self.there, self.bodies, self.status = True, [], 200

    async def send(self, method, path, ticket="", content=b"", kind=""):
        from hazemap.federated.device.http_client import HttpReply

        if not self.there:
            raise Unreachable("not there")
        if method == "GET":
            return HttpReply(200, None, HpkeConfigList((self.config,)).to_bytes(), HpkeConfigList.media_type())
        self.bodies.append(content)
        return HttpReply(self.status, None, b"")


class Room:
    """One device, its store, and servers by address."""

    def __init__(self, folder, policy=POLICY):
        self.store = EncryptedStore.opened(folder / "device.sqlite", create=True)
        [self.device] = settle(self.store, 1)
        self.servers = {ONE: Server(), TWO: Server()}
        self.policy, self.made = policy, 0

    def answers(self, **changes):
        known = replace(enrolment.read(self.store, self.device), server="https://maps.example", pinned=PINNED)

        async def line(url):
            return self.servers[url]

        account = DeviceAccount(self.store, self.device, known, self.policy)
        return ReportSender(account, ReportConnections(line), CommitQueue(self.store), **{"ask": given, **changes})

    def answered(self, carried, answers=None, **changes):
        work = announcement(carried, **changes)
        return asyncio.run((answers or self.answers()).answered(work, datetime.now(UTC)))

    @property
    def charges(self):
        return PrivacyAccount(self.store, self.device).charges()

    @property
    def log(self):
        return ActivityLog(self.store, self.device).lines()


def announcement(carried, **changes):
    text = carried if isinstance(carried, str) else dumps(carried)
    batch = "ab" * 32 if isinstance(carried, str) else carried.batch
    until = datetime.now(UTC).timestamp() + 600
    return replace(ServerTask(bytes.fromhex(batch), ANNOUNCED, text, b"", until), **changes)


def carried(round_=1, share=Fraction(1, 4), level=2, rows=1, carrier=None, batch="ab", **changes):
    question = Query(Counts(Leaves.at_level(TREE, level), AtMostRows(rows)), share)
    task = Task("homes", "a map", round_, question, BUDGET.part(share), BUDGET, Cohort(300, 300))
    now = int(datetime.now(UTC).timestamp())
    return CarriedTask(replace(task, **changes), carrier or ByTwoServers(ONE, TWO, 200), batch * 32, now)


@pytest.fixture
def room(tmp_path):
    return Room(tmp_path)


def test_a_crash_before_or_after_sending_changes_no_byte_and_no_charge(room):
    asked, leader = carried(), room.servers[ONE]
    send = leader.send

    async def lost(method, path, ticket="", content=b"", kind=""):
        reply = await send(method, path, ticket, content, kind)
        if method == "POST":
            raise Unreachable("the answer is lost")
        return reply

    leader.send = lost
    for _ in range(3):
        with pytest.raises(Unreachable):
            room.answered(asked)
    leader.send = send
    assert room.answered(asked) is None
    assert room.answered(asked) is None  # the server did not hear it
    assert len(leader.bodies) == 4 and len(set(leader.bodies)) == 1, "what has arrived is not sent again"
    [charge] = room.charges
    assert (charge.epsilon, charge.campaign, charge.round) == (Fraction(1, 4), "homes", 1)
    [line] = room.log
    assert line.epsilon == Fraction(1, 4) and "halves" in line.question and "the servers have" in line.outcome


def test_nothing_is_charged_before_the_servers_keys_are_known(room):
    room.servers[TWO].there = False
    with pytest.raises(Unreachable):
        room.answered(carried())
    assert not room.charges and not room.servers[ONE].bodies


def test_another_batch_is_another_report_and_another_charge_up_to_what_the_campaign_said(room):
    for number in range(4):
        assert room.answered(carried(batch=f"{number:02x}")) is None
    assert sum(charge.epsilon for charge in room.charges) == 1
    told = room.answered(carried(batch="ee"))
    assert told == "this device has nothing left to spend on this round"
    assert len(room.charges) == 4 and len(set(room.servers[ONE].bodies)) == 4
    assert room.answered(carried(batch="ee")) == LEFT


def test_reports_are_paid_by_the_account_s_time_and_not_by_the_device_s_clock(room):
    room.policy = replace(POLICY, period=Fraction(1, 4))
    assert room.answered(carried()) is None
    assert AccountClock(room.store).reading(datetime.now(UTC)).writes == (), "on the disk with the charge"
    later = datetime.now(UTC) + timedelta(days=400)
    work = announcement(carried(batch="cd"), until=later.timestamp() + 600)
    told = asyncio.run(room.answers().answered(work, later))
    assert told == "this device has nothing left to spend on this round" and len(room.charges) == 1


def test_a_leader_that_asks_for_a_new_report_gets_none(room):
    from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemType

    leader, document = room.servers[ONE], DapProblem(ProblemType.OUTDATED_CONFIG, "what key").document()

    async def outdated(method, path, ticket="", content=b"", kind=""):
        from hazemap.federated.device.http_client import HttpReply

        if method == "GET":
            return await Server.send(leader, method, path)
        return HttpReply(document.status, None, document.to_json(), "application/problem+json")

    leader.send = outdated
    assert "charged again" in room.answered(carried())
    assert len(room.charges) == 1
    assert room.answered(carried()) == LEFT


REFUSED = {
    "a server that is not in the policy": (lambda: carried(carrier=ByTwoServers(ONE, THREE, 200)), "none of them"),
    "a smaller batch": (lambda: carried(carrier=ByTwoServers(ONE, TWO, 49)), "50 must be"),
    "fewer people": (lambda: carried(cohort=Cohort(99, 99), carrier=ByTwoServers(ONE, TWO, 90)), "99 people"),
    "a shuffler": (lambda: carried(carrier=ByShuffler(ONE, 200, 64 * "0")), "policy names"),
    "two rows": (lambda: carried(rows=2), "one row"),
    "too fine": (lambda: whole(24), "at least 5 m"),
    "a budget above the policy's": (
        lambda: carried(share=Fraction(1), budget=PureDP(2), price=PureDP(2)),
        "one campaign may cost",
    ),
    "helpers of a cohort that is too trusting": (
        lambda: carried(cohort=Cohort(300, 300, corrupt=Fraction(0))),
        "10 %",
    ),
}


def whole(depth):
    from hazemap.spatial.quadtree import Quadtree

    tree = Quadtree.world(depth=depth)
    asked = whole_tree(tree, AtMostRows(1))
    return carried(share=Fraction(1), question=asked, carrier=ByOneReport(ONE, TWO, 200, 4))


@pytest.mark.parametrize(("wrong", "why"), REFUSED.values(), ids=REFUSED)
def test_what_a_policy_does_not_allow_is_refused_and_costs_nothing(room, wrong, why):
    assert why in room.answered(wrong())
    assert not room.charges and not room.servers[ONE].bodies
    [line] = room.log
    assert "refused" in line.outcome


@pytest.mark.parametrize("randomised", [True, False])
def test_reports_that_an_analyser_sees_are_charged_as_seen(tmp_path, randomised):
    announced, wire = (
        replace(reporting() if randomised else CARRIED, begun=int(datetime.now(UTC).timestamp())),
        Wire(204),
    )
    room = Room(tmp_path, replace(RULES, campaign=Fraction(2)))
    room.servers = {URL: wire}
    answers = room.answers()
    answers.account.enrolment = replace(answers.account.enrolment, pinned=SERVER.public.hex())
    assert room.answered(announced, answers, message=told(announced)) is None
    assert len(wire.sent) == 1 and [charge.seen for charge in room.charges] == [randomised]


def test_no_server_may_carry_reports_unless_the_policy_names_it(tmp_path):
    room = Room(tmp_path, Policy())
    assert "add it to aggregators in [servers]" in room.answered(carried())


def test_a_server_with_another_key_than_the_policy_pins_gets_nothing(tmp_path):
    from hashlib import sha256

    key = sha256(Server().config.public_key).hexdigest()
    other = Room(tmp_path, Policy(aggregators=(ONE, f"{TWO}#{'0' * 64}")))
    assert "another key" in other.answered(carried())
    assert not other.charges
    (tmp_path / "again").mkdir()
    same = Room(tmp_path / "again", Policy(aggregators=(f"{ONE}#{key}", f"{TWO}#{key}")))
    assert same.answered(carried()) is None


def test_a_campaign_cannot_change_who_carries_its_reports(tmp_path):
    room = Room(tmp_path, Policy(aggregators=(ONE, TWO, THREE)))
    room.servers[THREE] = Server()
    assert room.answered(carried()) is None
    told = room.answered(carried(round_=2, batch="cd", carrier=ByTwoServers(ONE, THREE, 200)))
    assert "who carries its reports" in told
    assert len(room.charges) == 1


def mangled(**changes):
    data = json.loads(dumps(carried()))
    data["CarriedTask"].update(changes)
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("{}", {}),
        ("null", {}),
        (mangled(batch="cd" * 32), {}),
        (mangled(batch=3), {}),
        (mangled(begun=-5), {}),
        (mangled(begun=1), {}),
        (mangled(carrier=None), {}),
        (mangled(more=1), {}),
        (mangled(), {"message": b"more"}),
        (mangled(), {"task": None}),
        (mangled(), {"until": 1.0}),
        (mangled(), {"until": float("nan")}),
    ],
)
def test_announcements_that_are_none_are_refused(room, text, changes):
    assert room.answered(text, **changes)
    assert not room.charges and not room.servers[ONE].bodies


def test_rows_that_cannot_be_counted_look_like_no_rows_and_like_any_rows(room, monkeypatch):
    assert len(RowStore(room.store, room.device)) == 1
    assert room.answered(carried()) is None
    with_row = carried(batch="cd")
    monkeypatch.setattr("hazemap.federated.device.account.device_account.RowStore.table", lambda *_: 1 / 0)
    assert room.answered(with_row) is None
    assert "could not be counted (ZeroDivisionError)" in room.log[-1].question
    assert len({len(body) for body in room.servers[ONE].bodies}) == 1
    assert len(room.charges) == 2


def test_a_device_outlives_a_line_that_fails_in_a_way_nobody_thought_of(room):
    class Broken(RoundReportRoute):
        def parcel(self, rows, seconds, stream):
            raise ZeroDivisionError

    answers = room.answers(made=Broken)
    assert room.answered(carried(), answers) == CANNOT
    assert not room.charges


OTHERS = {
    "another leader": {"carrier": ByTwoServers(THREE, TWO, 200)},
    "another leader, in another campaign": {"carrier": ByTwoServers(THREE, TWO, 200), "campaign": "another"},
    "a shuffler": {"carrier": ByShuffler(THREE, 200, 64 * "0")},
    "the same servers, for other cells": {"level": 1},
}


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_a_report_that_is_kept_goes_nowhere_else_if_its_batch_is_announced_in_other_words(room, changes):
    """Its policy was asked about the first announcement alone: the second one named a server of nobody's choice."""
    room.servers[THREE] = Server()
    assert room.answered(carried()) is None
    room.servers[ONE].bodies.clear()
    assert room.answered(carried(**changes)) == CHANGED
    assert not room.servers[ONE].bodies and not room.servers[THREE].bodies and len(room.charges) == 1
    assert room.answered(carried()) == LEFT


def kept_bytes(room):
    [(size,)] = room.store.read("SELECT coalesce(sum(length(sealed)), 0) FROM reports")
    return size


def test_a_report_that_has_arrived_or_is_never_taken_lies_on_no_disk(room):
    arrives, is_refused = carried(), carried(batch="cd")
    assert room.answered(arrives) is None
    assert kept_bytes(room) < 100 and room.answered(arrives) is None and len(room.charges) == 1
    room.servers[ONE].status = 400
    assert "does not take" in room.answered(is_refused)
    assert kept_bytes(room) < 200 and room.answered(is_refused) == LEFT


def test_reports_that_no_server_takes_are_few_and_are_left_a_day_after_their_time(room, monkeypatch):
    monkeypatch.setattr("hazemap.federated.device.store.answer_records.MOST_KEPT", 2)
    room.servers[ONE].there = True
    send = room.servers[ONE].send

    async def lost(method, *rest):
        if method == "POST":
            raise Unreachable("not now")
        return await send(method, *rest)

    room.servers[ONE].send = lost
    for batch in ("aa", "bb"):
        with pytest.raises(Unreachable):
            room.answered(carried(batch=batch))
    assert "that no server has taken yet, and makes no other" in room.answered(carried(batch="cc"))
    assert len(room.charges) == 2
    answers = room.answers()
    assert answers.forsaken(datetime.now(UTC)) == ()
    writes = answers.forsaken(datetime.now(UTC) + timedelta(days=1, minutes=11))
    assert room.store.commit([writes]) == [None] and kept_bytes(room) < 200
    assert {line.outcome for line in room.log[:2]} == {"made; no server took it"}


def test_a_round_that_costs_nearly_nothing_is_refused_before_a_row_is_read(room, monkeypatch):
    monkeypatch.setattr(
        "hazemap.federated.device.account.device_account.RowStore.table", lambda *_: pytest.fail("a row was read")
    )
    told = room.answered(carried(share=Fraction(1, 1_001)))
    assert "on this device a round costs ε = 0.001 or more" in told and not room.charges
