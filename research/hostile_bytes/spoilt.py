"""Valid bytes, spoilt, and what a reader says of them.

A reader may refuse bytes in words (`CodecError`, `Refused`) or give the one value that is written as those bytes. It
may not fail in another way, work for long, or make room for what a length only promises. An input is a valid one after
one to four accidents: a bit, a byte, a length or a type is another, something is cut, doubled, more, or comes from
another valid input. Of texts half of the inputs are changed in their values instead.
"""

import logging
import random
import resource
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import thread_time
from typing import Any, Final, NamedTuple

from hazemap.errors import CodecError, InputError, Refused
from hazemap.vdaf.tls_encoding import Structure

ROOM: Final = 512 << 20
"""Bytes of address space that all inputs together may take more than was there: a length of 2³² promises 4 GiB."""
PATIENCE: Final = 0.5
"""CPU seconds for one input; a usual one takes 20 µs."""
HANGS: Final = 20.0
"""CPU seconds after which an input is given up."""
LONGEST: Final = 8_192
"""Bytes of an input, at most, unless a valid one is longer."""
WORDS: Final = 2_000
"""Letters of a refusal, at most."""
LENGTHS: Final = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
EVERY: Final = 100_000
"""Inputs between two words on how far a run has come."""

Check = Callable[[bytes], None]
"""Takes any bytes: it refuses them, or finds that they are the encoding of what they were read as."""


class Reader(NamedTuple):
    """Bytes that a reader takes, the reader, and how to change the values of its texts."""

    valid: Sequence[bytes]
    check: Check
    changed: Callable[[random.Random], bytes] | None = None


@dataclass
class Found:
    """What came of the inputs to one reader. Times are CPU seconds, `slowest` that of one input; `grown` is MB."""

    name: str
    inputs: int = 0
    taken: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    seconds: float = 0
    slowest: float = 0
    grown: int = 0


class Unsound(Exception):
    """Bytes were taken for what they are not the encoding of."""


class Hangs(Exception):
    """An input takes too long."""


def must(true: bool) -> None:
    """`Unsound` unless it is so."""
    if not true:
        raise Unsound("the bytes were taken for what they do not say")


def structure(kind: type[Structure]) -> Check:
    """The decoder of a structure."""

    def check(data: bytes) -> None:
        must(kind.from_bytes(data).to_bytes() == data)

    return check


def canonical(read: Callable[[bytes], Any], write: Callable[[Any], bytes]) -> Check:
    """A decoder whose every answer is written as what it was read from."""

    def check(data: bytes) -> None:
        must(write(read(data)) == data)

    return check


def text(data: bytes) -> str:
    """The bytes as UTF-8; `Refused` for others, which no reader of texts is given."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused("this is not UTF-8") from None


def in_words(check: Check) -> Check:
    """A reader of what its caller can mend: an `InputError` is a refusal, too."""

    def checked(data: bytes) -> None:
        try:
            check(data)
        except InputError as error:
            raise Refused(str(error)) from None

    return checked


def spoilt(rng: random.Random, data: bytes, others: Sequence[bytes], longest: int = LONGEST) -> bytes:
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
            width = rng.choice((1, 2, 4, 8))
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
            start = rng.choice((at, rng.randrange(len(other) + 1)))  # the same place of another, or anywhere
            out[at : at + rng.choice((0, 4, 32, 1000))] = other[start : start + rng.choice((4, 32, 1000))]
        elif len(out) > 1:  # another type, or another version
            out[rng.choice((0, 1, 1, 1))] = rng.randrange(16)
    return bytes(out[:longest])


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


@contextmanager
def no_hanging() -> Iterator[Callable[[], None]]:
    """Raises `Hangs` in the main thread where the clock that is given is not wound for long."""

    def over(*_: object) -> None:
        raise Hangs(f"more than {HANGS:g} s of CPU")

    before = signal.signal(signal.SIGPROF, over)
    try:
        yield lambda: signal.setitimer(signal.ITIMER_PROF, HANGS) and None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def no_log() -> Iterator[None]:
    """A line for every refusal would be a gigabyte."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def tried(found: Found, check: Check, data: bytes) -> None:
    """One input, and what came of it."""
    found.inputs += 1
    start = thread_time()
    try:
        check(data)
        found.taken += 1
    except (CodecError, Refused) as error:
        words = str(error)
        if 0 < len(words) <= WORDS and words.isprintable():
            found.refused += 1
        else:
            found.faults.append(f"{type(error).__name__} in no plain words: {words!r:.500} from {data.hex()}")
    except Exception as error:
        found.faults.append(f"{type(error).__name__}: {error!s:.500} from {data.hex()}")
    took = thread_time() - start
    if took > PATIENCE:  # memory may have been tidied up at the time: the least of three counts
        took = min(took, *(timed(check, data) for _ in range(2)))
        if took > PATIENCE:
            found.faults.append(f"{took:.1f} s for {data.hex()}")
    found.slowest = max(found.slowest, took)


def most_memory() -> int:
    """The most memory of this process so far, in MB: one that keeps something of every input grows."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def timed(check: Check, data: bytes) -> float:
    """CPU seconds that an input takes, whatever comes of it."""
    start = thread_time()
    with suppress(Exception):
        check(data)
    return thread_time() - start


def drawn(rng: random.Random, reader: Reader, everything: Sequence[bytes]) -> bytes:
    """An input: half of what is mixed in comes from valid inputs to the same reader."""
    if reader.changed is not None and rng.random() < 0.5:
        return reader.changed(rng)
    valid = rng.choice(reader.valid)
    others = reader.valid if rng.random() < 0.5 else everything
    return spoilt(rng, valid, others, max(LONGEST, len(valid) + 100))


def fuzzed(
    number: int,
    seed: int,
    readers: Mapping[str, Sequence[Any]],
    only: Callable[[str], bool] = lambda _: True,
    tell: Callable[[Found], None] = lambda _: None,
) -> list[Found]:
    """`number` inputs to every reader, and what came of them; to some, the same as if all were asked."""
    table = {name: Reader(*each) for name, each in readers.items()}
    everything = [data for each in table.values() for data in each.valid]
    results = []
    with little_room(), no_hanging() as wind, no_log():
        for name, reader in table.items():
            if not only(name):
                continue
            rng, found = random.Random(f"{seed} {name}"), Found(name)  # noqa: S311 - to be drawn again alike
            for data in reader.valid:
                reader.check(data)
            start, before = thread_time(), most_memory()
            for at in range(1, number + 1):
                if at & 15 == 1:
                    wind()
                tried(found, reader.check, drawn(rng, reader, everything))
                if at % EVERY == 0 or at == number:
                    found.seconds, found.grown = thread_time() - start, most_memory() - before
                    tell(found)
            results.append(found)
    return results
