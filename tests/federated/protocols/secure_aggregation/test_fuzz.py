"""Whatever bytes come, a decoder says Refused or CodecError, soon and in little memory; 10⁶ inputs in the slow suite.

Inputs are messages of real sessions, spoilt one to four times (`research.hostile_bytes`). A run is a number: `RUN=17`
names the input that failed, and it is drawn again alike.
"""

import copy
import logging
import random
from contextlib import suppress
from functools import partial

import pytest
from tests.federated.protocols.secure_aggregation.people import Anything, FixedCoins, session

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.secure_aggregation import messages
from hazemap.federated.protocols.secure_aggregation.client import SecureSumClient
from hazemap.federated.protocols.secure_aggregation.messages import Stage, decode
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import SHARE
from research.hostile_bytes import secure_sums
from research.hostile_bytes.secure_sums import OfThisTask
from research.hostile_bytes.spoilt import Check, Found, fuzzed, little_room, spoilt, tried


@pytest.fixture(scope="module")
def corpus():
    return secure_sums.corpus()


def fuzz_decoders(corpus, run, inputs):
    """What is read alone, so often each: anything but a refusal, or the one value with these bytes, is a fault."""
    found = fuzzed(inputs, run, corpus, lambda name: not name.endswith("session"))
    assert [(each.name, each.faults[:1]) for each in found if each.faults] == []
    assert all(each.taken for each in found), "the accidents are too harsh"
    assert all(each.refused for each in found if not each.name.startswith("proof")), "or none"


def survives(check: Check, data: bytes, what: str) -> bool:
    """Whether the bytes were taken; anything but a refusal fails the test and shows them."""
    found = Found(what)
    tried(found, check, data)
    if found.faults:
        pytest.fail(f"{what}: {found.faults[0]}")
    return bool(found.taken)


def own(here, position, floors):
    """What makes a client, with the coins that it has drawn its keys by."""
    coins = FixedCoins(f"client {position}", b"noise %d" % position)
    return here.identities[position], floors, lambda _: here.vectors[position], None, coins


def fuzz_session(mode: Mode, run: int, rounds: int) -> int:
    """Spoilt messages to whole clients and servers in every stage; how many were put in.

    Who refuses has changed nothing: the session goes on with the right message, and ends with the right sum. Who
    takes a spoilt message is forgotten, as it is another history.
    """
    rng = random.Random(f"{mode} {run}")
    here = session(7, mode, degree=6, threshold=4, survivors=5, size=9, bits=13, name=f"fuzz {mode}")
    seen: list[bytes] = [here.terms.to_bytes()]
    inputs = 0
    while here.server.stage < Stage.OPENED:
        stage = here.server.stage
        for position in range(here.terms.clients):
            message = here.server.message_for(position)
            assert message is not None
            seen.append(message)
            where = f"{mode.name} {stage.name} RUN={run}"
            for _ in range(rounds):
                data = spoilt(rng, rng.choice((message, message, rng.choice(seen))), seen)
                kept = here.saved.get(position)
                parts = own(here, position, OfThisTask(here.terms))
                client = SecureSumClient.resume(kept, *parts) if kept else SecureSumClient(*parts)
                inputs += 1
                if not survives(client.receive, data, f"client {where}"):
                    assert client.reply == here.clients[position].reply
            reply = here.clients[position].receive(message)
            seen.append(reply)
            server = None
            for _ in range(rounds):
                server = server or copy.deepcopy(here.server)
                inputs += 1
                asked = position in server._asked
                data = spoilt(rng, rng.choice((reply, reply, rng.choice(seen))), seen)
                survives(partial(server.receive, position), data, f"server {where}")
                if not asked or position not in server._asked:
                    server = None
            here.server.receive(position, reply)
        here.server.advance()
    assert here.server.result.sums.tolist() == here.exact(range(here.terms.clients)).tolist()
    assert not here.server.culprits
    return inputs


@pytest.fixture(autouse=True)
def _no_log():
    """A line for every refusal would be a gigabyte."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def said(corpus):
    """All messages."""
    return [data for kind in messages.MESSAGES for data in corpus[kind.__name__].valid]


def test_decoders_refuse_or_understand_what_was_spoilt(corpus):
    fuzz_decoders(corpus, run=0, inputs=200)


@pytest.mark.parametrize("mode", Mode)
def test_clients_and_servers_refuse_or_understand_what_was_spoilt(mode):
    assert fuzz_session(mode, run=0, rounds=4) > 200


@pytest.mark.slow
@pytest.mark.parametrize("run", range(1, 10))
def test_decoders_refuse_or_understand_what_was_spoilt_a_hundred_thousand_times(corpus, run):
    fuzz_decoders(corpus, run, inputs=4_000)


@pytest.mark.slow
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("run", range(1, 6))
def test_clients_and_servers_refuse_or_understand_what_was_spoilt_ten_thousand_times(mode, run):
    assert fuzz_session(mode, run, rounds=140) > 9_000


@pytest.mark.parametrize("mode", Mode)
def test_a_spoilt_memory_is_refused_or_goes_on_as_a_client(mode):
    """What a device reads back after a crash on a bad disk: it says so, or lives on; it never dies of it."""
    rng = random.Random(f"memory {mode}")
    here = session(7, mode, degree=6, threshold=4, survivors=5, size=9, bits=13, name=f"fuzz {mode}")
    here.stage()
    while here.server.stage < Stage.OPENED:
        for position in range(here.terms.clients):
            message = here.server.message_for(position)
            kept = here.saved[position]
            parts = own(here, position, Anything())

            def goes_on(state: bytes, parts=parts, message=message) -> None:
                with suppress(InputError):  # another's memory
                    SecureSumClient.resume(state, *parts).receive(message)

            for _ in range(20):
                survives(goes_on, spoilt(rng, kept, [kept]), f"memory in {here.server.stage.name}")
            here.deliver(position)
        here.server.advance()


def test_a_length_that_promises_more_than_there_is_takes_no_memory(corpus):
    """The greatest length at every place of every message: refused before anything is made room for."""
    with little_room():
        for data in said(corpus):
            for at in range(len(data) - 4):
                survives(decode, data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :], f"length at {at}")


def test_a_decoder_that_believes_a_length_is_found_out():
    """The twin: it makes room for what a length promises, and so do the checks of these tests see it."""

    def believes(data: bytes) -> None:
        bytearray(int.from_bytes(data[:4], "big"))
        raise CodecError("too late")

    with little_room(), pytest.raises(pytest.fail.Exception, match="MemoryError"):
        survives(believes, b"\xff\xff\xff\xff", "a believer")
    with pytest.raises(pytest.fail.Exception, match="IndexError"):
        survives(lambda data: data[10], b"short", "a clumsy one")


def test_every_kind_of_message_is_spoilt(corpus):
    assert {data[1] for data in said(corpus)} == {kind.kind for kind in messages.MESSAGES}
    assert {len(data) for data in corpus["share"].valid} == {SHARE}
