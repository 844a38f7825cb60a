"""Whatever bytes come, a decoder says Refused or CodecError, soon and in little memory; 10⁶ inputs in the slow suite.

Inputs are messages of real sessions, spoilt one to four times: bits, bytes, lengths, pieces cut, doubled, moved or
put in from another message. A run is a number: `RUN=17` names the input that failed, and it is drawn again alike.
"""

import copy
import logging
import random
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from tests.cpu_time import least_cpu

from hazemap.errors import CodecError, InputError, NotOpened, Refused
from hazemap.protocols.secure_aggregation import merkle_roster as roster
from hazemap.protocols.secure_aggregation import messages
from hazemap.protocols.secure_aggregation.authenticated_encryption import associated, seal, unseal
from hazemap.protocols.secure_aggregation.client import Client
from hazemap.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.protocols.secure_aggregation.client_checkpoint import ClientState
from hazemap.protocols.secure_aggregation.messages import LETTER, Stage, decode
from hazemap.protocols.secure_aggregation.modular_packing import pack, unpack
from hazemap.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.protocols.secure_aggregation.shamir_sharing import SHARE, is_share, join, split
from hazemap.protocols.tls_encoding import TlsReader, TlsWriter

from .people import Anything, Session, dice, session

ROOM = 512 << 20
"""Bytes of address space that all inputs together may take more than was there: a length of 2³² takes 4 GiB."""
PATIENCE = 1.0
"""CPU seconds for one input; a usual one takes 20 µs."""
LENGTHS = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
MOST = 4096

Target = Callable[[bytes], object]


@dataclass
class Corpus:
    """Valid bytes by what they are, and what each is put into."""

    valid: dict[str, list[bytes]]
    targets: dict[str, list[Target]]


def canonical(read: Callable[[bytes], object], write: Callable[[object], bytes]) -> Target:
    """A decoder whose every answer is written as what it was read from."""

    def check(data: bytes) -> None:
        assert write(read(data)) == data, "two encodings of one value"

    return check


def read_all(read: Callable[[TlsReader], object]) -> Target:
    def check(data: bytes) -> None:
        reader = TlsReader(data)
        read(reader)
        reader.end()

    return check


SHARES = dict(zip([1, 2], split(b"s" * 32, 2, [1, 2], dice("shares")), strict=True))


def joined(share: bytes) -> None:
    """A share that can be read may still be wrong: then it tells another secret, or nothing."""
    try:
        assert join({1: share, 2: SHARES[2]}, 2) != b"s" * 32 or share == SHARES[1]
    except NotOpened:
        assert is_share(share)


def played(mode: Mode) -> tuple[Session, dict[str, list[bytes]]]:
    """A session to its end, with one client gone after SHARES, and everything that was said and saved in it."""
    here = session(7, mode, degree=6, threshold=4, survivors=5, size=9, bits=13, name=f"fuzz {mode}")
    said: dict[str, list[bytes]] = {"message": [], "memory": []}
    while here.server.stage < Stage.OPENED:
        for position in range(here.terms.clients):
            message = here.server.message_for(position)
            if message is None or (position == 2 and here.server.stage >= Stage.MASKED):
                continue
            reply = here.clients[position].receive(message)
            said["message"] += [message, reply] if position < 2 else []
            said["memory"].append(here.saved[position])
            here.server.receive(position, reply)
        here.server.advance()
    return here, said


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    both = [played(mode) for mode in Mode]
    here = both[0][0]
    said = [what for _, what in both]
    path = roster.proof(here.roster, 3)
    key, address = bytes(32), associated(bytes(32), 1, 2, 3)
    numbers = {1: b"a" * LETTER, 5: b"b" * LETTER}

    def proven(data: bytes) -> None:
        cut = tuple(data[i : i + 32] for i in range(0, len(data), 32))
        assert not roster.belongs(here.terms.roster, 7, 3, here.roster[3], cut) or cut == path

    def opened(data: bytes) -> None:
        assert unseal(key, address, data) == b"letter"

    def unpacked(bits: int) -> Target:
        return canonical(lambda data: unpack(data, 9, bits), lambda vector: pack(vector, bits))  # type: ignore[arg-type]

    packed = [pack(np.arange(9, dtype=np.uint16 if bits <= 16 else np.uint32), bits) for bits in (5, 13, 16, 31, 32)]
    return Corpus(
        valid={
            "message": [data for what in said for data in what["message"]],
            "terms": [each.terms.to_bytes() for each, _ in both],
            "memory": [data for what in said for data in what["memory"]],
            "bitmap": [b"\0\0\0\x0a\x80\x40"],
            "numbers": [TlsWriter().numbers((1, 5, 9)).done(), TlsWriter().numbered(numbers, LETTER).done()],
            "proof": [b"".join(path)],
            "letter": [seal(key, address, b"letter")],
            "vector": packed,
            "share": [SHARES[1]],
        },
        targets={
            "message": [canonical(decode, lambda message: message.encode())],  # type: ignore[attr-defined]
            "terms": [canonical(SessionParameters.from_bytes, lambda terms: terms.to_bytes())],  # type: ignore[attr-defined]
            "memory": [ClientState.from_bytes],
            "bitmap": [read_all(Bitmap.read)],
            "numbers": [read_all(TlsReader.numbers), read_all(lambda reader: reader.numbered(LETTER))],
            "proof": [proven],
            "letter": [opened],
            "vector": [unpacked(bits) for bits in (5, 13, 16, 31, 32)],
            "share": [joined],
        },
    )


def spoilt(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """The bytes after one to four accidents."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        at = rng.randrange(len(out) + 1)
        accident = rng.randrange(9)
        if accident == 0 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif accident == 1 and out:
            out[at % len(out)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif accident == 2:
            width = rng.choice((1, 2, 4))
            value = rng.choice((*LENGTHS, len(out), len(out) - at, rng.randrange(1 << 32)))
            out[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "big")
        elif accident == 3:
            del out[at:]
        elif accident == 4:
            out += rng.randbytes(rng.choice((1, 2, 4, 32, 100)))
        elif accident == 5:
            del out[at : at + rng.choice((1, 2, 4, 32, rng.randrange(1, 100)))]
        elif accident == 6:
            out[at:at] = out[at : at + rng.choice((1, 4, 32, rng.randrange(1, 200)))]
        elif accident == 7:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            out[at : at + rng.choice((0, 4, 32, 1000))] = other[start : start + rng.choice((4, 32, 1000))]
        elif len(out) > 1:  # another type, or another version
            out[rng.choice((0, 1, 1, 1))] = rng.randrange(14)
    return bytes(out[:MOST])


@contextmanager
def little_room() -> Iterator[None]:
    """A `MemoryError` for who takes much more memory than there was at the beginning."""
    with open("/proc/self/statm") as pages:  # noqa: PTH123 - no file, and gone at once
        now = int(pages.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = now + ROOM if before[1] == resource.RLIM_INFINITY else min(now + ROOM, before[1])
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def suppressed(target: Target, data: bytes) -> None:
    """What becomes of the bytes once more, whatever it is."""
    with suppress(Exception):
        target(data)


def survives(target: Target, data: bytes, what: str) -> bool:
    """Whether the bytes were taken; anything but a refusal fails the test and shows them."""
    start = time.thread_time()
    try:
        target(data)
        taken = True
    except (Refused, CodecError):
        taken = False
    except Exception as error:
        pytest.fail(f"{what}: {type(error).__name__}: {error} from {data.hex()}")
    took = time.thread_time() - start
    if took > PATIENCE:  # memory may have been tidied up at the time
        took = min(took, least_cpu(lambda: suppressed(target, data)))
    if took > PATIENCE:
        pytest.fail(f"{what}: {took:.1f} s for {data.hex()}")
    return taken


def fuzz_decoders(corpus: Corpus, run: int, inputs: int) -> None:
    rng = random.Random(run)
    kinds = ["message"] * 6 + ["memory"] * 2 + [kind for kind in corpus.valid if kind not in ("message", "memory")]
    everything = [data for many in corpus.valid.values() for data in many]
    taken = 0
    with little_room():
        for number in range(inputs):
            kind = rng.choice(kinds)
            data = spoilt(rng, rng.choice(corpus.valid[kind]), everything)
            for target in corpus.targets[kind]:
                taken += survives(target, data, f"{kind} RUN={run} number {number}")
    assert 0 < taken < inputs / 2, "the accidents are too harsh, or none"


@dataclass(frozen=True)
class OfThisTask:
    """What a device insists on before it counts: numbers as many and as long as those that follow from its task."""

    terms: SessionParameters

    def check(self, terms: SessionParameters) -> None:
        if (terms.size, terms.bits) != (self.terms.size, self.terms.bits):
            raise Refused("the session has other numbers than its task")


def fuzz_session(mode: Mode, run: int, rounds: int) -> int:
    """Spoilt messages to whole clients and servers in every stage; how many were put in.

    Who refuses has changed nothing: the session goes on with the right message, and ends with the right sum. Who
    takes a spoilt message is forgotten, as it is another history.
    """
    rng = random.Random(f"{mode} {run}")
    here = session(7, mode, degree=6, threshold=4, survivors=5, size=9, bits=13, name=f"fuzz {mode}")
    seen: list[bytes] = [here.terms.to_bytes()]
    tried = 0
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
                own = (here.identities[position], OfThisTask(here.terms), lambda _, own=here.vectors[position]: own)
                client = Client.resume(kept, *own) if kept else Client(*own)
                tried += 1
                if not survives(client.receive, data, f"client {where}"):
                    assert client.reply == here.clients[position].reply
            reply = here.clients[position].receive(message)
            seen.append(reply)
            server = None
            for _ in range(rounds):
                server = server or copy.deepcopy(here.server)
                tried += 1
                asked = position in server._asked
                data = spoilt(rng, rng.choice((reply, reply, rng.choice(seen))), seen)
                survives(partial(server.receive, position), data, f"server {where}")
                if not asked or position not in server._asked:
                    server = None
            here.server.receive(position, reply)
        here.server.advance()
    assert here.server.result.sums.tolist() == here.exact(range(here.terms.clients)).tolist()
    assert not here.server.culprits
    return tried


@pytest.fixture(autouse=True)
def _no_log():
    """A line for every refusal would be a gigabyte."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_decoders_refuse_or_understand_what_was_spoilt(corpus):
    fuzz_decoders(corpus, run=0, inputs=5_000)


@pytest.mark.parametrize("mode", Mode)
def test_clients_and_servers_refuse_or_understand_what_was_spoilt(mode):
    assert fuzz_session(mode, run=0, rounds=4) > 200


@pytest.mark.slow
@pytest.mark.parametrize("run", range(1, 10))
def test_decoders_refuse_or_understand_what_was_spoilt_a_hundred_thousand_times(corpus, run):
    fuzz_decoders(corpus, run, inputs=100_000)


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
            own = (here.identities[position], Anything(), lambda _, own=here.vectors[position]: own)

            def goes_on(state: bytes, own=own, message=message) -> None:
                with suppress(InputError):  # another's memory
                    Client.resume(state, *own).receive(message)

            for _ in range(20):
                survives(goes_on, spoilt(rng, kept, [kept]), f"memory in {here.server.stage.name}")
            here.deliver(position)
        here.server.advance()


def test_a_length_that_promises_more_than_there_is_takes_no_memory(corpus):
    """The greatest length at every place of every message: refused before anything is made room for."""
    with little_room():
        for data in corpus.valid["message"]:
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
    assert {data[1] for data in corpus.valid["message"]} == {kind.kind for kind in messages.MESSAGES}
    assert {len(data) for data in corpus.valid["share"]} == {SHARE}
