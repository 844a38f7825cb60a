"""What a server says at any endpoint, and whatever becomes of disk, clock and policy meanwhile, a device goes on.

It says no more than it has paid for, and keeps no more than it must.
"""

import asyncio
import json
import logging
import random
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest
from tests.cpu_time import within
from tests.federated.device.recipe_room import OPEN, POLICY, recipe, recipe_task, typing
from tests.federated.device.reporting import request
from tests.federated.device.room import FEW, NOW, TREE, UNTIL, Room, entry_of, settle, task
from tests.federated.device.test_agent import SERVER, Scripted, answer, made, stepped, work

from hazemap import codec
from hazemap.encoders import CountMinSketch
from hazemap.errors import CodecError, FileError, Unreachable
from hazemap.federated.device import device_process, enrolment
from hazemap.federated.device.account.account_clock import AccountClock
from hazemap.federated.device.account.activity_log import ActivityLog, LogEntry
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.account.recipe_account import RecipeAccount
from hazemap.federated.device.device_process import DeviceProcess
from hazemap.federated.device.http_client import HttpReply
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.server_task import MOST_LETTERS, MOST_TASKS, ParsedTaskCache, ServerTask
from hazemap.federated.device.store import row_store as rows
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.row_store import DeviceRows
from hazemap.federated.protocols.chained_log import LogHead
from hazemap.federated.protocols.secure_aggregation.messages import Invitation, Stage
from hazemap.federated.recipes.policy_document import SignedPolicy
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.federated.trust.device_tasks import covers
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.local_randomisers import Asymmetric
from hazemap.privacy.signing_identities import Identity
from hazemap.queries.noisy_queries import Query

TWENTY = [["so"]] * 20


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        yield store


def size(store):
    return sum(path.stat().st_size for path in store.path.parent.iterdir())


def upto(room, stage):
    while room.server.stage < stage:
        for position in range(len(room.devices)):
            room.turn(position)
        room.server.advance()


# What a person reads, and what stays on their disk.


def test_a_refused_task_leaves_a_short_line_that_moves_no_cursor(store):
    """Purposes of 5 MB filled a disk, one refusal after the other; escapes in them hid lines of the log."""
    [first, *_] = settle(store, 20)
    before = size(store)
    purpose = "2026-01-01 all is well\n\x1b[1A\x1b[2K\u202e" + "x" * 5_000_000
    for number in range(3):
        room = Room(store, task(purpose=purpose, campaign="\x1b[2J" * 100), nonce=bytes([number]) * 32)
        assert room.turn(0).refusal
    assert size(store) < before + 200_000
    for line in ActivityLog(store, first).lines():
        assert len(str(line)) < 10_000 and str(line).count("\n") == 2
        assert str(line).replace("\n", "").isprintable()


def test_a_query_of_many_lines_is_one_line_of_the_log(store):
    """A text in a query, which is let run, was a line of the log that the device had never written."""
    [first, *_] = typing(store, TWENTY)
    forged = "SELECT word FROM keyboard WHERE word <> '\n2026-03-01 00:00:00 UTC  keyboard, recipe other (nothing)'"
    room = Room(store, recipe_task(recipe(query=SqlQuery(forged))), policy=OPEN)
    assert room.turn(0).reply
    [line] = ActivityLog(store, first).entries()
    assert line.query == forged and str(line).count("\n") == 2


def test_a_server_gives_a_device_a_name_that_can_be_shown(store):
    enrolment.add(store)
    ticket = json.dumps({"device": "d-1\x1b[2J" + "x" * 3_000, "ticket": "new"}).encode()
    asyncio.run(DeviceProcess(store, FEW).enrol(SERVER, "token", Scripted(answer(201, content=ticket))))
    name = enrolment.read(store, 1).name
    assert name.isprintable() and len(name) <= 201


def test_long_tasks_are_not_all_kept_in_memory():
    """32 tasks of 32 MB each were: a gigabyte."""
    tasks, short = ParsedTaskCache(), codec.dumps(task())
    longer = lambda number: codec.dumps(replace(task(), purpose="x" * number))  # noqa: E731
    for number in range(6):
        assert len(tasks.find(longer(8_000_000 + number)).task.purpose) == 8_000_000 + number
        assert tasks.letters <= MOST_LETTERS
    for number in range(MOST_TASKS + 5):
        tasks.find(longer(number))
    assert tasks.letters < 50 * len(short) and tasks.find(short) is tasks.find(short)
    long = longer(MOST_LETTERS - len(longer(0)))
    assert tasks.find(long) is tasks.find(long), "the latest is kept however long it is"


# Every endpoint that a device reads.


def mutated(rng, content):
    """Bytes that are nearly an answer."""
    data = bytearray(content)
    way = rng.randrange(6)
    if way == 0 or not data:
        return rng.choice((b"", b"[]", b"null", b"7", b'"x"', b"[" * 9_999, b"\xff\xfe", b"{" + b'"a":1,' * 999))
    if way == 1:
        return bytes(data[: rng.randrange(len(data))])
    if way == 2:
        with suppress(ValueError):
            fields = json.loads(content)
            if isinstance(fields, dict):
                name = rng.choice(sorted(fields))
                fields[name] = rng.choice((None, True, 7, -1.5, "", "x" * 9_999, [], {}, 10**30, "\ud800", "00" * 32))
                return json.dumps(fields).encode()
    for _ in range(rng.choice((1, 2, 9))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


class Mutating:
    """A transport to a server that answers every request nearly as it should, or not at all."""

    def __init__(self, honest, rng):
        self.honest, self.rng, self.posted = honest, rng, []

    async def send(self, method, path, ticket="", content=b"", kind=""):
        if method == "POST":
            self.posted.append((path, content))
        if self.rng.random() < 0.1:
            raise Unreachable("gone", self.rng.choice((None, 0.0, 1e300)))
        found = next((content for start, content in self.honest.items() if path.startswith(start)), b"")
        status = self.rng.choice((200, 200, 200, 201, 204, 301, 400, 401, 403, 404, 409, 413, 422, 999))
        wait = self.rng.choice((None, 0.0, 5.0, 1e300))
        return HttpReply(status, wait, mutated(self.rng, found) if self.rng.random() < 0.7 else found)


@pytest.mark.parametrize("number", [10, pytest.param(200, marks=[pytest.mark.slow])])
def test_a_device_goes_on_whatever_a_server_says_at_every_endpoint(store, number, caplog):
    """Work, the log of recipes, challenges and tickets, each nearly right: nothing is sent that was not paid."""
    caplog.set_level(logging.CRITICAL)
    rng = random.Random(number)
    devices = typing(store, TWENTY)
    for nonce in range(number):
        asked = recipe_task() if nonce % 2 else task()
        room = Room(store, asked, policy=OPEN, nonce=nonce.to_bytes(32, "big"))
        log = entry_of(recipe_task(), LogHead()) + "\n"
        ticket = json.dumps({"device": "d-1", "ticket": "new"}).encode()
        upto(room, rng.choice((Stage.KEYS, Stage.KEYS, Stage.KEYS, Stage.SHARES)))
        honest = {
            "/v1/tasks/": b"",
            "/v1/tasks": work(room).content,
            "/v1/recipes": log.encode(),
            "/v1/challenge": json.dumps({"server": "00" * 32, "challenge": "00" * 56, "signature": "00" * 64}).encode(),
            "/v1/enrol": ticket,
        }
        agent = made(store, Mutating(honest, rng), OPEN)
        for wait in stepped(agent, 3):
            assert 0 <= wait <= 3_600
        for path, content in agent.http_transport.posted:
            assert path.startswith(("/v1/tasks/", "/v1/challenge", "/v1/enrol"))
            if path.endswith("/refusal"):
                assert len(content) < 20_000
    assert RecipeAccount(store, devices[0]).charges() == PrivacyAccount(store, devices[0]).charges() == []


def test_a_task_of_more_numbers_than_its_session_is_refused_soon(store):
    """A device looked for a modulus of 2^63 sums without end: one message, and it never answered anybody again."""
    settle(store, 20)
    room = Room(store, task())
    sketch = CountMinSketch(TREE, 2, 1 << 63, 1)
    endless = replace(task(), question=Query(sketch, Fraction(1, 10)))
    offered = Invitation.decode(room.server.message_for(0))
    terms = replace(offered.terms, task=endless.digest)
    message = replace(offered, terms=terms).encode()
    with within(1):
        step = room.answering(0).answer(ServerTask(terms.session, 1, codec.dumps(endless), message, UNTIL), NOW)
    assert "the session's size does not follow from its task" in step.refusal


def test_a_price_of_reports_is_found_soon_whatever_a_task_asks():
    """A sum of 96 people took a device 0.8 s, for each ε₀ that a server thought of; 0.1 s at most by design."""
    for people, local in ((40, "1/1048576"), (96, "1/1000"), (120, "1/1000"), (200, "1/50"), (10_000, "1/1000")):
        law = Asymmetric(Fraction(local))
        with within(0.5):
            assert not covers(ZCDP(Fraction(1, 10**30)), law, people)


# The disk.


def full(store, pages=0):
    """Leave so many pages more to the file."""
    [[count]] = store.read("PRAGMA page_count")
    store.read(f"PRAGMA max_page_count = {count + pages}")


def test_a_device_whose_disk_is_full_says_nothing_and_pays_once_when_there_is_room(store):
    [first, *_] = typing(store, TWENTY)
    room = Room(store, recipe_task(recipe()), policy=OPEN)
    upto(room, Stage.MASKED)
    waiting = room.work(0)
    rows.added(store, {first: DeviceRows.of([0.0] * 3, [0.0] * 3, time=0.0)}, None)
    for pages in range(3):
        full(store, pages)
        step = room.answering(0).answer(waiting, NOW)
        with pytest.raises(FileError, match="disk is full"):
            store.commit([(*step.writes, ActivityLog(store, first).added(99, long_line()))])
        assert RecipeAccount(store, first).charges() == [] == store.read("SELECT 1 FROM reports")
    store.read("PRAGMA max_page_count = 1000000")
    sent = room.turn(0)
    assert sent.reply and len(RecipeAccount(store, first).charges()) == 1
    assert room.answering(0).answer(waiting, NOW).reply == sent.reply


def long_line():
    return LogEntry(NOW, "c", "x" * 100_000, 1, "?")


def test_an_agent_on_a_full_disk_posts_nothing_and_tries_again(store):
    settle(store, 20)
    room = Room(store, task(level=6))
    transport = Scripted(work(room), work(room), answer(204))
    agent = made(store, transport)
    full(store)
    [wait] = stepped(agent)
    assert agent.failed == 1 and wait >= 0.5 and [path for _, path, *_ in transport.sent] == ["/v1/tasks"]
    store.read("PRAGMA max_page_count = 1000000")
    stepped(agent)
    assert transport.sent[-1][1] == f"/v1/tasks/{room.terms.session.hex()}"


def test_a_process_outlives_a_store_that_cannot_be_written_for_a_while(store, monkeypatch):
    """Deleting what is old ended the process of all devices where the disk was full, or another process held it."""
    device = enrolment.add(store)[0]
    known = enrolment.read(store, device).enrolled(SERVER, "token", "d-1", "ticket")
    store.commit([[enrolment.saved(store, device, known)]])
    tried = []

    def expire(*_):
        tried.append(1)
        if len(tried) == 1:
            raise FileError("the disk is full")

    monkeypatch.setattr(device_process.rows, "expire", expire)
    monkeypatch.setattr(device_process, "AGAIN", 0.0)
    monkeypatch.setattr(device_process, "LOOK", 0.01)
    asyncio.run(DeviceProcess(store, FEW, until_idle=0.1).run(Scripted(*[answer(204, 0.05)] * 99)))
    assert len(tried) == 2


def test_a_process_notes_the_time_for_accounts_when_it_starts_and_again_where_it_could_not(store, monkeypatch):
    device = enrolment.add(store)[0]
    known = enrolment.read(store, device).enrolled(SERVER, "token", "d-1", "ticket")
    store.commit([[enrolment.saved(store, device, known)]])
    keep, tried = AccountClock.keep, []

    def failing(clock, now):
        tried.append(1)
        if len(tried) == 1:
            raise FileError("the disk is full")
        keep(clock, now)

    monkeypatch.setattr(AccountClock, "keep", failing)
    monkeypatch.setattr(device_process, "LOOK", 0.01)
    asyncio.run(DeviceProcess(store, FEW, until_idle=0.1).run(Scripted(*[answer(204, 0.05)] * 99)))
    assert len(tried) == 2 and AccountClock(store).reading(NOW).writes == ()


# The clock, and the policy.


def test_what_is_paid_while_a_clock_is_set_back_is_not_forgotten_when_it_is_put_right(store):
    """Whoever could set a clock back by years, and forward again, had the rest of a budget again each time."""
    [first, *_] = typing(store, TWENTY)
    account, past = RecipeAccount(store, first), NOW - timedelta(days=2_000)
    maps = PrivacyAccount(store, first)
    assert store.commit([[account.charge(request("0.1"), NOW)]]) == [None]
    assert store.commit([[account.charge(request("0.2"), past)]]) == [None]
    assert store.commit([[maps.charge(task(budget=PureDP(3)), bytes(32), past)]]) == [None]
    assert [each.time for each in account.charges()] == [NOW, NOW] and maps.charges()[0].time == NOW
    later = NOW + timedelta(days=29)
    assert store.commit([[maps.charge(task(budget=PureDP(3)), bytes(32), later)]]) == [None]
    assert maps.charges()[1].time == later
    assert maps.spent(30, later).epsilon == Fraction(6, 10)


def test_a_policy_that_comes_between_a_question_and_its_answer_rules_the_answer(store):
    """The session began under a policy that admits it; what is charged and sent follows the one that rules by then."""
    identity = Identity.create()
    ShippedPolicies(store).accept(SignedPolicy.sign(POLICY, identity), identity.public, NOW)
    [first, *_] = typing(store, TWENTY)
    room = Room(store, recipe_task(), policy=OPEN)
    upto(room, Stage.MASKED)
    tighter = replace(
        POLICY, version=2, fields=tuple(replace(each, local_epsilon=Fraction(1)) for each in POLICY.fields)
    )
    old = SignedPolicy.sign(POLICY, identity)
    ShippedPolicies(store).accept(SignedPolicy.sign(tighter, identity), None, NOW)
    step = room.turn(0)
    assert step.reply is None and "may have ε₀ = 1 at most" in step.refusal
    assert RecipeAccount(store, first).charges() == []
    with pytest.raises(Exception, match="version"):
        ShippedPolicies(store).accept(old, None, NOW)
    assert ShippedPolicies(store).current().policy.version == 2


def test_a_message_that_no_task_is_read_from_is_not_kept():
    tasks = ParsedTaskCache()
    for text in ("", "[", "{}", '{"Task": 1}'):
        with pytest.raises(CodecError):
            tasks.find(text)
    assert tasks.letters == 0
