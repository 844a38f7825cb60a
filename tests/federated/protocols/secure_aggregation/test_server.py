"""A server is what was told to it: the same calls, in the same order, give the same server."""

from contextlib import suppress
from dataclasses import replace

import pytest
from tests.federated.protocols.secure_aggregation.people import STAGES, dice, session

from hazemap.errors import CodecError, InputError, NotOpened, Refused
from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.server import Server
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode


class Recorder:
    """A coordinator's diary: everything that a server was told."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.told: list[tuple] = []

    def __getattr__(self, name):
        return getattr(self.server, name)

    def receive(self, position: int, message: bytes) -> None:
        self.told.append(("receive", position, message))
        self.server.receive(position, message)

    def leave(self, position: int) -> None:
        self.told.append(("leave", position))
        self.server.leave(position)

    def advance(self) -> None:
        self.told.append(("advance",))
        self.server.advance()


def retold(fresh: Server, told: list[tuple]) -> Server:
    for name, *arguments in told:
        with suppress(Refused, CodecError, NotOpened):
            getattr(fresh, name)(*arguments)
    return fresh


def looks(server: Server) -> tuple:
    messages = tuple(server.message_for(position) for position in range(server.terms.clients))
    result = server.result and (server.result.sums.tolist(), server.result.people)
    return (
        server.stage,
        server.waiting,
        dict(server.culprits),
        dict(server.dropped),
        messages,
        result,
        server._total.tolist(),
    )


@pytest.mark.parametrize("mode", Mode)
def test_a_server_killed_at_any_moment_is_rebuilt_from_its_diary(mode):
    """With a drop-out, a liar, and somebody late: after every single event a new server is the same as the old one."""
    here = session(7, mode, threshold=3, survivors=4)
    here.server = recorder = Recorder(here.server)
    here.cheats[3, Stage.ASSENT] = lambda _reply: b"garbage"
    snapshots = []
    while here.server.stage < Stage.OPENED:
        for position in range(7):
            if not (position == 5 and here.server.stage >= Stage.MASKED):
                here.deliver(position)
                snapshots.append((len(recorder.told), looks(recorder.server)))
        if here.server.stage is Stage.ASSENT:
            with pytest.raises(Refused):
                here.server.receive(5, b"late")
        here.server.advance()
        snapshots.append((len(recorder.told), looks(recorder.server)))
    assert recorder.server.culprits.keys() == {3} and recorder.server.dropped == {5: Stage.MASKED}
    for length, look in snapshots:
        assert looks(retold(here.fresh(), recorder.told[:length])) == look


def test_a_session_goes_on_with_a_server_that_was_rebuilt():
    here = session(6)
    for stage in STAGES:
        here.server = recorder = Recorder(here.fresh()) if stage is Stage.KEYS else here.server
        here.until(stage)
        rebuilt = Recorder(retold(here.fresh(), recorder.told))
        rebuilt.told = recorder.told
        here.server = rebuilt
    here.play()
    assert here.server.result.sums.tolist() == here.exact(range(6)).tolist()


def test_a_server_that_does_not_fit_its_terms_is_refused():
    here, other = session(5), session(5, name="other")
    lying = session(5, Mode.MALICIOUS)
    twice = [here.roster[0], *here.roster[:4]]
    for terms, people, seed in (
        (here.terms, other.roster, here.seed),
        (here.terms, here.roster[:4], here.seed),
        (here.terms, here.roster, bytes(32)),
        (here.terms, here.roster, None),
        (lying.terms, lying.roster, bytes(32)),
        (replace(here.terms, roster=roster.root(twice)), twice, here.seed),
    ):
        with pytest.raises(InputError):
            Server(terms, people, seed)


def test_a_stage_waits_for_who_was_asked_and_has_not_answered():
    here = session(5)
    assert here.server.waiting == 5
    here.deliver(0)
    assert here.server.waiting == 4 and here.server.message_for(0) is None
    here.server.leave(1)
    here.server.leave(1)
    assert here.server.waiting == 3 and here.server.dropped == {1: Stage.KEYS}
    here.stage()
    assert here.server.stage is Stage.SHARES and here.server.waiting == 4
    assert here.server.message_for(1) is None and here.server.message_for(99) is None


def test_a_session_that_is_over_has_nothing_to_close():
    here = session(5)
    here.play()
    with pytest.raises(InputError, match="over"):
        here.server.advance()
    with pytest.raises(Refused):
        here.server.receive(0, here.clients[0].reply)
    assert here.server.stage is Stage.OPENED and here.server.culprits == {}


def test_a_server_holds_no_vector_of_anybody():
    """Memory is O(size + clients · degree): what it keeps of 8 vectors of 40,000 bytes is their sum."""
    import gc
    import tracemalloc

    here = session(8, size=10_000, bits=32)
    here.until(Stage.MASKED)
    gc.collect()
    tracemalloc.start()
    for position in range(8):
        reply = here.clients[position].receive(here.server.message_for(position))
        held = here.clients[position]._memory
        here.clients[position]._memory = None  # the reply is kept by the client: only the server is measured
        here.saved.clear()
        here.server.receive(position, reply)
        del reply, held
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 40_000


def test_random_bytes_are_never_taken():
    here = session(5, Mode.MALICIOUS)
    while here.server.stage < Stage.OPENED:
        with pytest.raises((Refused, CodecError)):
            here.server.receive(0, dice(f"noise {here.server.stage}")(100))
        here.server.culprits.clear()
        here.server._asked.add(0)
        here.stage()
    assert here.server.result.sums.tolist() == here.exact(range(5)).tolist()
