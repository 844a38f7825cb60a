"""A store that is put back from a copy repeats itself: nothing is said twice with other noise, or under old masks."""

import asyncio
import json
import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from tests.federated.device import test_carried_recipes as recipes
from tests.federated.device import test_report_sender as carried_maps
from tests.federated.device.recipe_room import OPEN, STREAMS, recipe_task, typing
from tests.federated.device.room import FEW, NOW, Room, settle, task
from tests.federated.device.test_agent import SERVER, answer, made, stepped
from tests.federated.device.test_agent import work as written
from tests.federated.device.test_report_sender import ONE
from tests.issuing import given

from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.device_account import NOTHING_LEFT
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.account.recipe_account import RecipeAccount
from hazemap.federated.device.agent import Agent
from hazemap.federated.device.store.encrypted_store import CommitQueue, EncryptedStore
from hazemap.federated.device.store.event_store import EventStore
from hazemap.federated.device.store.row_store import DeviceRows, RowStore
from hazemap.federated.protocols.secure_aggregation.client import ClientState
from hazemap.federated.protocols.secure_aggregation.messages import Keys, Stage
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode

PEOPLE = 10


@dataclass
class Session:
    """A session of which one device's messages and replies are known, and its store before each of them."""

    room: Room
    heard: list
    said: list
    copies: list

    @classmethod
    def played(cls, folder, kind):
        store = EncryptedStore.opened(folder / "devices.sqlite", create=True)
        if kind == "a recipe":
            typing(store, [["so"] * 3, *[["be"]] * 19])
            asked = recipe_task(mode=Mode.MALICIOUS)
        else:
            settle(store, PEOPLE)
            asked = task(PEOPLE, mode=Mode.MALICIOUS)
        made = cls(Room(store, asked, policy=OPEN if kind == "a recipe" else FEW), [], [], [])
        while made.room.server.stage < Stage.OPENED:
            made.copies.append(_copied(folder, store, len(made.copies)))
            made.heard.append(made.room.work(0))
            made.said.append(made.room.turn(0).reply)
            for position in range(1, len(made.room.devices)):
                made.room.turn(position)
            made.room.server.advance()
        made.copies.append(_copied(folder, store, len(made.copies)))
        return made

    def put_back(self, instant):
        """The store as it was before the message of this number."""
        return _opened(self.copies[instant], "put back")

    def again(self, instant, changed=None):
        """What the device says from a copy to the last message that it answered and all later ones; its charges."""
        said, device = [], self.room.devices[0]
        with self.put_back(instant) as store:
            if changed:
                changed(store, device)
            for work in self.heard[max(instant - 1, 0) :]:
                step = self.room.answering(0, store).answer(work, NOW)
                assert store.commit([step.writes]) == [None]
                said.append(step.reply)
            return said, len(PrivacyAccount(store, device).charges()) + len(RecipeAccount(store, device).charges())


def _copied(folder, store, number):
    store.emptied()
    copy = folder / f"copy {number}.sqlite"
    shutil.copy(store.path, copy)
    shutil.copy(f"{store.path}.key", f"{copy}.key")
    return copy


def _other_rows(store, device):
    RowStore(store, device).add(DeviceRows.of([100.0] * 9, [-50.0] * 9, time=NOW.timestamp()), None)
    EventStore(store, device).donate(STREAMS[0], [("it",)] * 99, NOW.timestamp() - 30)


@pytest.fixture(scope="module", params=["a map", pytest.param("a recipe", marks=pytest.mark.slow)])
def played(request, tmp_path_factory):
    return Session.played(tmp_path_factory.mktemp("session"), request.param)


def test_a_store_put_back_at_any_instant_says_nothing_twice_with_other_noise(played):
    """Seven instants of a session: before its first message, and after each of six."""
    assert len(played.heard) == 6 and len(played.copies) == 7
    for instant in range(7):
        said, charges = played.again(instant)
        assert said == ([None] if instant == 6 else played.said[max(instant - 1, 0) :]), instant
        assert charges == 1, "for what is said again it pays once"


def test_rows_that_changed_since_a_session_began_change_nothing_that_is_said_in_it(played):
    for instant in range(1, 6):
        said, _ = played.again(instant, _other_rows)
        assert said == played.said[instant - 1 :], instant


def test_another_contribution_shows_other_keys_and_meets_no_mask_of_the_first(played):
    """Put back before the first message, with other rows: whoever holds both answers knows that, and no difference."""
    if played.room.task.recipe is not None:
        pytest.skip("another randomised report may be the same by chance, and then it is the same answer")
    (said, _), first = played.again(0, _other_rows), Keys.decode(played.said[0]).keys
    other = Keys.decode(said[0]).keys
    shown = {first.sealing, first.masking, first.commitment, other.sealing, other.masking, other.commitment}
    assert len(shown) == 6 and first.signature != other.signature
    old, new = (_private(played, each) for each in (None, _other_rows))
    assert not set(old) & set(new)


def _private(played, changed):
    """The secrets after the first message: private keys, and the seed of its own mask."""
    with played.put_back(0) as store:
        if changed:
            changed(store, played.room.devices[0])
        own = played.room.answering(0, store)
        assert store.commit([own.answer(played.heard[0], NOW).writes]) == [None]
        state = ClientState.from_bytes(own.account.sessions.find(played.heard[0].session).state)
        return state.sealing, state.masking, state.seed


def test_a_state_whose_contribution_is_not_the_one_that_was_committed_to_leaves_the_session(played):
    with played.put_back(3) as store:
        own = played.room.answering(0, store)
        record = own.account.sessions.find(played.heard[0].session)
        state = ClientState.from_bytes(record.state)
        assert state.stage is Stage.SHARES
        forged = record.next(replace(state, said=bytes(32)).to_bytes(), record.until)
        assert store.commit([[own.account.sessions.written(played.heard[0].session, forged)]]) == [None]
        step = own.answer(played.heard[3], NOW)
        assert step.reply is None and "its first message committed to: it leaves" in step.refusal


@pytest.mark.parametrize("kind", ["a map", "a recipe"])
def test_a_report_to_other_servers_is_the_same_from_every_copy(tmp_path, kind):
    """Three instants: before it is made, after it was kept and before it is sent, and after it has arrived."""
    module, asked = (carried_maps, carried_maps.carried()) if kind == "a map" else (recipes, recipes.carried())
    room = module.Room(tmp_path)
    copies, leader, send = [_copied(tmp_path, room.store, 0)], room.servers[ONE], room.servers[ONE].send

    async def kept(method, *rest):
        if method == "POST":
            copies.append(_copied(tmp_path, room.store, 1))
        return await send(method, *rest)

    leader.send = kept
    assert room.answered(asked) is None
    copies.append(_copied(tmp_path, room.store, 2))
    leader.send = send
    for copy in copies:
        with EncryptedStore.opened(copy) as room.store:
            assert room.answered(asked) is None
            assert len(room.charges) == 1
    assert len(leader.bodies) >= 3 and len(set(leader.bodies)) == 1


@pytest.mark.slow
def test_what_an_account_allows_after_a_copy_is_put_back_is_what_it_has_forgotten(tmp_path):
    """Five instants between four reports of ε = 1/4 to a campaign of ε = 1: what was said is said again for nothing.

    Only who asks anew, in other batches, is answered from the budget that the copy has forgotten: the statement says
    that no store is put back.
    """
    room, asked = carried_maps.Room(tmp_path), [carried_maps.carried(batch=f"{number:02x}") for number in range(4)]
    copies = []
    for number, each in enumerate(asked):
        copies.append(_copied(tmp_path, room.store, number))
        assert room.answered(each) is None
    copies.append(_copied(tmp_path, room.store, 4))
    bodies = set(room.servers[ONE].bodies)
    assert len(bodies) == 4 and sum(charge.epsilon for charge in room.charges) == 1
    for paid, copy in enumerate(copies):
        again, anew = (_opened(copy, f"{what} {paid}") for what in ("again", "anew"))
        with again as room.store:
            assert [room.answered(each) for each in asked] == [None] * 4
            assert set(room.servers[ONE].bodies) <= bodies and sum(each.epsilon for each in room.charges) == 1
            assert "nothing left to spend" in room.answered(carried_maps.carried(batch="ee"))
        with anew as room.store:
            fresh = [room.answered(carried_maps.carried(batch=f"f{number}")) for number in range(5)]
            assert [each is None for each in fresh] == [True] * (4 - paid) + [False] * (1 + paid)
        del room.servers[ONE].bodies[:]


class Keeper:
    """A server that asks one device, by its agent, and keeps what it deposits; an honest one gives it back."""

    def __init__(self, work, kept="", honest=True):
        self.work, self.kept, self.honest, self.said = work, kept, honest, []

    async def send(self, method, path, ticket="", content=b"", kind=""):
        place, _, head = path.partition("?head=")
        if method == "GET":
            found = self.work()
            if found is None or not self.honest:
                return answer(204, 1.0) if found is None else found
            fields = json.loads(found.content) | {"head": self.kept or None}
            return answer(200, content=json.dumps(fields).encode())
        if place.endswith("/credentials"):
            return answer(200, content=await given(bytes.fromhex(place.split("/")[3]), content))
        self.kept = head or self.kept
        self.said.append((place, content))
        return answer(204)

    @property
    def refusals(self):
        return [json.loads(content)["reason"] for place, content in self.said if place.endswith("/refusal")]


def _next_round(store, honest, kept):
    """What a device says to the invitation to another round of its campaign."""
    room = Room(store, task(PEOPLE, round=2), policy=FEW, nonce=bytes([1] * 32))
    server = Keeper(lambda: written(room), kept, honest)
    stepped(made(store, server))
    return server


def _secure_sum(folder):
    """One session with an agent: copies of the store before each message and at the end, messages, and the head."""
    store, copies, heard = EncryptedStore.opened(folder / "devices.sqlite", create=True), [], []
    settle(store, PEOPLE)
    room = Room(store, task(PEOPLE), policy=FEW)
    server = Keeper(lambda: written(room))
    agent = made(store, server)
    while room.server.stage < Stage.OPENED:
        copies.append(_copied(folder, store, len(copies)))
        heard.append(written(room))
        stepped(agent)
        room.server.receive(0, server.said[-1][1])
        assert bool(server.kept) == (room.server.stage >= Stage.MASKED), "it goes with what was paid for"
        for position in range(1, len(room.devices)):
            room.turn(position)
        room.server.advance()
    copies.append(_copied(folder, store, len(copies)))
    return copies, heard, server.kept


def test_after_a_copy_a_device_whose_server_is_honest_answers_nothing_that_costs(tmp_path):
    """At each instant of a session; a server that keeps heads back is answered from what the copy remembers."""
    copies, _, kept = _secure_sum(tmp_path)
    forgot = [instant for instant in range(len(copies)) if not _charges(copies[instant])]
    assert 3 <= len(forgot) < len(copies)
    for instant, copy in enumerate(copies):
        for honest in (True, False):
            with _opened(copy, f"{instant} {honest}") as store:
                server = _next_round(store, honest, kept)
                lines = [each.outcome for each in ActivityLog(store, 1).lines() if "counts as spent" in each.outcome]
                if honest and instant in forgot:
                    assert server.refusals == [NOTHING_LEFT], instant
                    assert len(lines) == 2 and "forgotten: 1;" in lines[0] and "from a copy" in lines[1], instant
                else:
                    assert not server.refusals and not lines and server.said[0][1], instant


def _charges(copy):
    with _opened(copy, "looked at") as store:
        return PrivacyAccount(store, 1).charges()


def test_a_session_that_a_copy_had_begun_is_left_where_it_would_be_paid(tmp_path):
    """The copy is of before the masked vector, which the server has: it gives the head back when it asks again."""
    copies, heard, kept = _secure_sum(tmp_path)
    before = max(instant for instant in range(len(copies)) if not _charges(copies[instant]))
    for honest in (True, False):
        with _opened(copies[before], f"again {honest}") as store:
            server = Keeper(lambda: heard[before], kept, honest)
            stepped(made(store, server))
            assert server.refusals == [NOTHING_LEFT] * honest
            assert len(PrivacyAccount(store, 1).charges()) == (not honest) and server.kept == kept


@pytest.mark.parametrize("kind", ["a map", "a recipe"])
def test_a_report_to_other_servers_deposits_the_head_when_it_has_arrived(tmp_path, kind):
    module = carried_maps if kind == "a map" else recipes
    room, asked, other = module.Room(tmp_path), module.carried(), module.carried(batch="cd")
    copy, server = _copied(tmp_path, room.store, 0), Keeper(lambda: _announced(asked))
    _reports(room, server, asked)
    assert not server.refusals and len(server.kept) == 48 and len(room.charges) == 1
    room.store = _opened(copy, "put back")
    again = Keeper(lambda: _announced(other), server.kept)
    _reports(room, again, other)
    assert again.refusals == [NOTHING_LEFT] and again.kept == server.kept and len(room.charges) == 0
    room.store = _opened(copy, "put back, and nothing said")
    silent = Keeper(lambda: _announced(other), server.kept, honest=False)
    _reports(room, silent, other)
    assert not silent.refusals and silent.kept == server.kept, "the same number, the same head"


def _announced(carried):
    work = carried_maps.announcement(carried)
    until = datetime.fromtimestamp(work.until, UTC).isoformat()
    fields = {"session": carried.batch, "stage": 0, "task": work.task, "message": "", "until": until}
    return answer(200, content=json.dumps(fields).encode())


def _reports(room, server, asked):
    """One announcement to the room's device, by its agent."""
    answers = room.answers()
    known = answers.account.enrolment.enrolled(SERVER, "token", "d-1", "ticket", carried_maps.PINNED)
    commits, turns = CommitQueue(room.store), asyncio.Semaphore(1)
    agent = Agent(room.store, room.device, known, answers.account.policy, server, commits, turns, hold=0)
    answers.ask, agent._sender = agent._credentials, answers
    if asked.task.recipe is not None:
        room.publish(asked)
        agent.public_log = room.log
    stepped(agent)


def _opened(copy, name):
    fresh = copy.with_name(f"{name}.sqlite")
    for end in ("", ".key"):
        shutil.copy(f"{copy}{end}", f"{fresh}{end}")
    return EncryptedStore.opened(fresh)
