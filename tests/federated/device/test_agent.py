"""A device at work: how often it asks, how it fails, and what it says again."""

import asyncio
import base64
import json
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from tests.federated.device.room import FEW, Room, settle, task

from hazemap.errors import CodecError, InputError, Refused, Unreachable
from hazemap.federated.device import agent as agents
from hazemap.federated.device import device_process, enrolment
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.agent import Agent
from hazemap.federated.device.device_process import DeviceProcess, SimulatedDropout
from hazemap.federated.device.http_client import Backoff, HttpReply
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.recipes.public_recipe_log import PublicRecipeLog, SeenRecipeLog
from hazemap.federated.device.server_task import ServerTask
from hazemap.federated.device.store.encrypted_store import CommitQueue, EncryptedStore
from hazemap.federated.device.task_handler import TaskResponse
from hazemap.federated.protocols.chained_log import LogHead
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import CHALLENGE, Challenge, enrolment_statement
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity, verified

SERVER, NONCE = "https://maps.example", bytes(range(CHALLENGE))


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        yield store


MAPS = Identity.create()


class Scripted:
    """A transport whose server is a list of answers; errors are raised. `sent` is what was asked.

    Challenges are given besides, by `server` under `at`.
    """

    def __init__(self, *answers, server=MAPS, at=SERVER):
        self.answers, self.sent, self.server, self.at = list(answers), [], server, at

    async def send(self, method, path, ticket="", content=b"", kind=""):
        if path == "/v1/challenge" and self.server:
            given = Challenge.signed(self.server, self.at, bytes.fromhex(json.loads(content)["identity"]), NONCE)
            fields = {"server": given.server, "challenge": given.nonce, "signature": given.signature}
            return HttpReply(200, None, json.dumps({name: value.hex() for name, value in fields.items()}).encode())
        self.sent.append((method, path, ticket, content))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def made(store, http_transport, policy=FEW, there=None):
    """The first device of a store, enrolled."""
    device = (enrolment.devices(store) or enrolment.add(store))[0]
    known = enrolment.read(store, device).enrolled(SERVER, "token", "d-1", "ticket", MAPS.public.hex())
    extra = {"there": there} if there else {}
    return Agent(
        store=store,
        device=device,
        enrolment=known,
        policy=policy,
        http_transport=http_transport,
        commits=CommitQueue(store),
        turns=asyncio.Semaphore(1),
        **extra,
    )


def answer(status=204, wait=None, content=b""):
    return HttpReply(status, wait, content)


def work(room, position=0):
    """The server's work for a device, as JSON."""
    asked = room.work(position)
    fields = {
        "session": asked.session.hex(),
        "stage": asked.stage,
        "task": asked.task,
        "message": base64.b64encode(asked.message).decode(),
        "until": (datetime.now(UTC) + timedelta(days=1)).isoformat(),
    }
    return answer(200, content=json.dumps(fields).encode())


def stepped(agent, times=1):
    async def run():
        return [await agent.step() for _ in range(times)]

    return asyncio.run(run())


def test_a_server_says_when_to_come_again(store):
    agent = made(store, Scripted(answer(204, 7.5), answer(204, 1e9), answer(204)))
    first, second, third = stepped(agent, 3)
    assert first == 7.5
    assert second == agents.LONGEST
    assert 0.5 * agents.ASK <= third <= 1.5 * agents.ASK


def test_failures_are_answered_with_patience_that_doubles_and_never_all_at_once(store):
    agent = made(store, Scripted(*[Unreachable("no")] * 12, answer(204, 1.0), Unreachable("no")))
    waits = stepped(agent, 14)
    for number, wait in enumerate(waits[:12], start=1):
        middle = min(300.0, 2.0 ** (number - 1))
        assert 0.5 * middle <= wait <= 1.5 * middle
    assert waits[12] == 1.0
    assert waits[13] <= 1.5, "one answer, and patience begins anew"
    assert len({Backoff().wait(5) for _ in range(50)}) > 10


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(store):
    agent = made(store, Scripted(Unreachable("busy", 42.0), Unreachable("busy", 1e9)))
    waits = stepped(agent, 2)
    assert waits == [42.0, agents.LONGEST]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"no JSON",
        json.dumps({"session": "ab", "stage": 1, "task": None, "message": "", "until": "2026-01-01"}).encode(),
        json.dumps({"session": "00" * 32, "stage": "1", "task": None, "message": "", "until": "2026-01-01"}).encode(),
        json.dumps({"session": "00" * 32, "stage": 1, "task": 5, "message": "", "until": "2026-01-01"}).encode(),
        json.dumps({"session": "00" * 32, "stage": 1, "task": None, "message": "?", "until": "2026-01-01"}).encode(),
        json.dumps({"session": "00" * 32, "stage": 1, "task": None, "message": "", "until": "soon"}).encode(),
    ],
)
def test_work_that_cannot_be_read_is_no_work(store, content):
    with pytest.raises(CodecError):
        ServerTask.from_json(content)
    agent = made(store, Scripted(answer(200, content=content)))
    [wait] = stepped(agent)
    assert 0.5 <= wait <= 1.5
    assert agent.failed == 1


def test_a_reply_is_on_the_disk_before_it_is_sent_and_sent_again_after_a_failure(store):
    settle(store, 20)
    room = Room(store, task())
    http_transport = Scripted(work(room), Unreachable("the net is gone"), work(room), answer(204))
    agent = made(store, http_transport)
    assert stepped(agent, 2)[1] <= 1.5 * agents.AGAIN
    (_, _, _, _), (_, path, ticket, first), _, (_, again_path, _, again) = http_transport.sent
    assert (path, ticket) == (f"/v1/tasks/{room.terms.session.hex()}", "ticket")
    assert (again_path, again) == (path, first)
    assert len(ActivityLog(store, agent.device).lines()) == 1


def test_nothing_is_sent_where_nothing_could_be_written(store, monkeypatch):
    settle(store, 20)
    room = Room(store, task())
    http_transport = Scripted(work(room))
    agent = made(store, http_transport)
    monkeypatch.setattr(store, "commit", lambda batches: [InputError("the disk is full")] * len(batches))
    with pytest.raises(InputError):
        stepped(agent)
    assert len(http_transport.sent) == 1


def test_what_becomes_of_an_answer_is_on_the_log(store):
    settle(store, 20)
    for status, outcome, again in (
        (409, "the server took no more answers to this stage", True),
        (401, "the server did not accept an answer (HTTP 401)", True),
        (404, "the server did not accept an answer (HTTP 404)", True),
        (413, "the server did not accept an answer (HTTP 413)", False),
        (422, "the server did not accept an answer (HTTP 422)", False),
        (410, "the server has stopped this study", False),
    ):
        room = Room(store, task(), nonce=str(status).encode() + bytes(29))
        http_transport = Scripted(work(room), answer(status), work(room), answer(204))
        agent = made(store, http_transport)
        stepped(agent, 2)
        assert ActivityLog(store, agent.device).lines()[-1].outcome == outcome
        assert http_transport.sent[3][1].endswith("/refusal") is not again


def test_a_refusal_is_posted_with_its_reason(store):
    settle(store, 20)
    room = Room(store, task())
    http_transport = Scripted(work(room), answer(204))
    agent = made(store, http_transport, Policy(modes=("semi-honest",)))
    stepped(agent)
    _, (method, path, _, content) = http_transport.sent
    assert (method, path) == ("POST", f"/v1/tasks/{room.terms.session.hex()}/refusal")
    assert json.loads(content) == {"reason": "a session of 20 clients is too small: at least 100 must be invited"}
    assert agent.refusals == 1


def test_a_server_that_is_refused_again_and_again_fills_no_log(store):
    settle(store, 20)
    dear = [Room(store, task(share=Fraction(1), budget=PureDP(2)), nonce=bytes([n]) * 32) for n in range(9)]
    told = [each for room in dear for each in (work(room), answer(204))]
    agent = made(store, Scripted(*told, work(Room(store, task())), answer(204)))
    *refused, answered = stepped(agent, 10)
    assert agent.refusals == 9 and refused[0] < 1 and refused[-1] >= 30 and answered < 1


def test_a_forgotten_ticket_is_renewed_for_the_same_identity(store):
    fresh = json.dumps({"device": "d-1", "ticket": "new"}).encode()
    http_transport = Scripted(answer(401), answer(201, content=fresh), answer(204, 3.0))
    agent = made(store, http_transport)
    assert stepped(agent, 2)[1] == 3.0
    assert http_transport.sent[2][2] == "new"
    own = enrolment.read(store, agent.device)
    assert (own.ticket, own.identity) == ("new", agent.enrolment.identity)
    said = json.loads(http_transport.sent[1][3])
    public = bytes.fromhex(said["identity"])
    statement = enrolment_statement(SERVER, MAPS.public, NONCE, public, "token")
    assert (said["version"], said["origin"]) == (2, SERVER)
    assert verified(public, bytes.fromhex(said["signature"]), statement)
    assert own.pinned == MAPS.public.hex()


def test_a_server_that_does_not_enrol_again_is_left_alone(store):
    agent = made(store, Scripted(answer(401), answer(403)))
    [wait] = stepped(agent)
    assert 0.5 <= wait <= 1.5 and agent.failed == 1


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (answer(403), Refused),
        (answer(201, content=b"{}"), CodecError),
        (answer(201, content=b'{"device": "d", "ticket": "a\\r\\nb"}'), CodecError),
        (answer(201, content=b'{"device": "d", "ticket": ""}'), CodecError),
        (answer(201, content=b'{"device": "d", "ticket": "%s"}' % (b"t" * 4_097)), CodecError),
    ],
)
def test_an_enrolment_that_is_no_enrolment_is_said_so(store, said, error):
    enrolment.add(store)
    with pytest.raises(error):
        asyncio.run(DeviceProcess(store, FEW).enrol(SERVER, "token", Scripted(said)))


def test_an_enrolment_that_fails_again_and_again_keeps_nothing_of_it(store):
    def frames():
        with pytest.raises(CodecError) as caught:
            asyncio.run(enrolment.enrolled(enrolment.Enrolment.create(), Scripted(answer(201)), SERVER, "token"))
        return len(caught.traceback)

    assert len({frames() for _ in range(3)}) == 1


def test_a_server_that_is_busy_at_an_enrolment_is_left_alone_for_a_minute_at_most(store, monkeypatch):
    slept, busy = [], [Unreachable("busy", wait) for wait in (1e300, 7.0, None)]

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(device_process.asyncio, "sleep", sleep)
    enrolment.add(store)
    assert enrolling(store, Scripted(*busy, answer(201, content=TICKET))) == 1
    assert slept[:2] == [60.0, 7.0] and slept[2] < 2


def test_a_device_that_is_not_there_neither_answers_nor_charges(store):
    settle(store, 20)
    room = Room(store, task())
    http_transport = Scripted(work(room))
    agent = made(store, http_transport, there=SimulatedDropout(Fraction(1), Stream.from_os()))
    agent.there._from[room.terms.session] = 1
    stepped(agent)
    assert len(http_transport.sent) == 1
    assert PrivacyAccount(store, agent.device).charges() == [] and ActivityLog(store, agent.device).lines() == []


def test_devices_fall_silent_as_often_as_asked_and_at_every_stage():
    # 10,000 sessions: each of the six numbers strays by 6 standard deviations with probability below 2e-9
    stages = dict.fromkeys((1, 3, 4, 5, 6), 0)
    there = SimulatedDropout(Fraction(1, 10), Stream.from_os())
    for number in range(10_000):
        session = number.to_bytes(32, "big")
        silent = [stage for stage in stages if not there(ServerTask(session, stage, None, b"", 0.0))]
        if silent:
            assert silent == [stage for stage in stages if stage >= silent[0]], "who is silent stays so"
            stages[silent[0]] += 1
    assert abs(sum(stages.values()) - 1_000) < 6 * 30
    assert all(abs(count - 200) < 6 * 14 for count in stages.values())


def test_an_idle_server_ends_a_run_that_was_told_to_end(store):
    device = enrolment.add(store)[0]
    known = enrolment.read(store, device).enrolled(SERVER, "token", "d-1", "ticket", MAPS.public.hex())
    store.commit([[enrolment.saved(store, device, known)]])
    tally = asyncio.run(DeviceProcess(store, FEW, until_idle=0.1).run(Scripted(*[answer(204, 0.05)] * 1_000)))
    assert (tally.devices, tally.answers) == (1, 0)


def test_a_store_without_an_enrolled_device_cannot_run(store):
    with pytest.raises(InputError, match="no device"):
        asyncio.run(DeviceProcess(store, FEW).run(Scripted()))
    enrolment.add(store)
    with pytest.raises(InputError, match="not enrolled"):
        asyncio.run(DeviceProcess(store, FEW).run(Scripted()))


def test_no_ticket_and_no_token_is_in_a_process_log(store, caplog):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="hazemap.federated.device")
    fresh = json.dumps({"device": "d-1", "ticket": "fresh-ticket"}).encode()
    agent = made(store, Scripted(answer(401), answer(201, content=fresh), Unreachable("gone"), answer(200)))
    stepped(agent, 3)
    assert "gone" in caplog.text
    for secret in ("ticket", "token", agent.enrolment.identity.hex()):
        assert secret not in caplog.text
    assert "ticket" not in repr(agent.enrolment)


def test_a_server_that_wants_to_be_asked_at_once_is_asked_four_times_a_second_at_most(store):
    """`Retry-After: 0` made a device ask 660 times a second."""
    agent = made(store, Scripted(answer(wait=0.0), answer(wait=1e-9), answer(wait=0.3)))
    assert stepped(agent, 3) == [0.25, 0.25, 0.3]


TICKET = json.dumps({"device": "d-1", "ticket": "new"}).encode()


def enrolling(store, http_transport, moved=False):
    return asyncio.run(DeviceProcess(store, FEW).enrol(SERVER, "token", http_transport, moved))


def test_a_server_with_another_identity_than_at_first_is_refused_until_the_person_says_so(store):
    enrolment.add(store)
    assert enrolling(store, Scripted(answer(201, content=TICKET))) == 1
    agent, other = made(store, Scripted()), Identity.create()
    agent.enrolment = enrolment.read(store, agent.device)
    agent.http_transport = Scripted(answer(401), answer(201, content=TICKET), server=other)
    stepped(agent)
    assert agent.failed == 1 and [path for _, path, *_ in agent.http_transport.sent] == ["/v1/tasks"]
    with pytest.raises(Refused, match=r"another identity.*--new-identity"):
        asyncio.run(enrolment.enrolled(agent.enrolment, agent.http_transport, SERVER, "token"))
    log = SeenRecipeLog(store, agent.device, SERVER, PublicRecipeLog(LogHead(3, "00" * 32)))
    store.commit([log.kept(LogHead())])
    assert log.seen().entries == 3 and replace(log, server="https://other.example").seen().entries == 0
    assert enrolling(store, agent.http_transport, moved=True) == 1
    assert log.seen().entries == 0, "another server has another log of recipes"
    assert enrolment.read(store, agent.device).pinned == other.public.hex()


@pytest.mark.parametrize(
    ("http_transport", "error", "words"),
    [
        (Scripted(at="https://evil.example"), Refused, "not signed for https://maps.example"),
        (Scripted(answer(404), server=None), Refused, "older than this device"),
        (Scripted(answer(421, content=b'{"error": "this is\\nanother"}'), server=None), Refused, "this is another"),
        (Scripted(answer(200, content=b'{"server": 7}'), server=None), CodecError, "as agreed"),
        (Scripted(answer(200, content=b"[" * 999), server=None), CodecError, "as agreed"),
        (Scripted(answer(403, content=b'{"error": "used\\u001b before"}')), Refused, "used before"),
    ],
)
def test_a_server_that_cannot_say_who_it_is_gets_no_proof(store, http_transport, error, words):
    enrolment.add(store)
    with pytest.raises(error, match=words):
        enrolling(store, http_transport)
    assert not any(b"signature" in content for _, path, _, content in http_transport.sent if path != "/v1/enrol")


def test_a_fleet_uses_the_codes_of_a_file_in_order_and_again_after_a_failure(store):
    enrolment.add(store, 3)
    with pytest.raises(InputError, match="3 devices, but only 2 codes"):
        asyncio.run(DeviceProcess(store, FEW).enrol(SERVER, ["a", "b"], Scripted()))
    for device in enrolment.devices(store)[:1]:
        known = enrolment.read(store, device).enrolled(SERVER, "a", "d-1", "ticket")
        store.commit([[enrolment.saved(store, device, known)]])
    http_transport = Scripted(*[answer(201, content=TICKET)] * 2)
    asyncio.run(DeviceProcess(store, FEW).enrol(SERVER, ["a", "b", "c"], http_transport))
    assert sorted(json.loads(content)["token"] for *_, content in http_transport.sent) == ["b", "c"]


def test_when_an_answer_to_a_recipe_goes_out_does_not_tell_how_long_its_query_ran(store, monkeypatch):
    settle(store, 20)
    room, clock, slept = Room(store, task()), [100.0], []

    async def sleep(seconds):
        slept.append(clock[0] + seconds)

    for took in (0.5, 3.9, 4.5):
        agent = made(store, Scripted(work(room), answer(200)))
        agent._swept = clock[0] = 100.0

        def slow(*_, took=took):
            clock[0] += took
            return TaskResponse(reply=b"report", held=True)

        with monkeypatch.context() as patched:
            patched.setattr(agent._handler, "answer", slow)
            patched.setattr(agents.asyncio, "sleep", sleep)
            patched.setattr(agents.time, "monotonic", lambda: clock[0])
            stepped(agent)
    assert slept == [104.0, 104.0, 108.0]


def test_a_message_that_comes_again_and_again_is_answered_less_and_less_often(store):
    """It was answered 119 times a minute: each time the same bytes were sent."""
    settle(store, 20)
    room = Room(store, task())
    asked, posted = work(room), answer(204)
    agent = made(store, Scripted(*[asked, posted] * 15))
    first, *waits = stepped(agent, 15)
    assert first <= 1.5 * agents.AGAIN
    for number, wait in enumerate(waits):
        assert 0.5 <= wait / min(300.0, agents.AGAIN * 2.0**number) <= 1.5
    assert agent.answers == 15 and len({content for method, _, _, content in agent.http_transport.sent if content}) == 1


def test_sessions_that_a_server_ends_before_they_are_paid_are_begun_less_and_less_often(store):
    settle(store, 20)
    rooms = [Room(store, task(), nonce=bytes([number]) * 32) for number in range(8)]
    agent = made(store, Scripted(*[each for room in rooms for each in (work(room), answer(410))]))
    waits = stepped(agent, 8)
    for number, wait in enumerate(waits):
        assert 0.5 <= wait / min(60.0, agents.AGAIN * 2.0**number) <= 1.5
