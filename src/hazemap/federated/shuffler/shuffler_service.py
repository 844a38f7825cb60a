"""A shuffler without a socket: its limits, what it takes, permutes, hands on and forgets, and its tables.

Each step is one transaction, so that a machine that dies leaves it done or undone:

    announced ── open ── permuted ── forgotten
                  │ submissions go in, whole, one a person
                          │ one order, drawn once and stored: what is handed on again are the same bytes

A permuted batch is stored in pieces that can be fetched one by one.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import Final, NamedTuple

import numpy as np

from hazemap.errors import CodecError, ConversationError, InputError, NotOpened, Refused, StoreError, Unreachable
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms
from hazemap.federated.protocols.shuffle.submission import read_submission
from hazemap.federated.service.store import Contradiction, Schema, Store, Write
from hazemap.federated.shuffler.analyser_client import FIRST
from hazemap.privacy.random_stream import Stream, in_any_order
from hazemap.vdaf.hpke import HpkeKeyPair

LONGEST = 30 * 86_400
"""Seconds that a batch may be open."""


@dataclass(frozen=True)
class BatchLimits:
    """What a shuffler's operator allows.

    `least` people are in a batch that is handed on, at least, whatever its terms say. `largest` bytes are what all
    batches together may need. `keep` is how many seconds after its end a batch waits for its analyser, and is then
    forgotten.

    >>> BatchLimits(least=1_000).least
    1000
    """

    least: int = 50
    largest: int = 1 << 30
    keep: int = 7 * 86_400

    def __post_init__(self) -> None:
        for number, what in ((self.least, "people"), (self.largest, "bytes"), (self.keep, "seconds")):
            if type(number) is not int or number < 1:
                raise InputError(f"a shuffler's limits are whole {what} of at least 1, not {number!r:.40}")

    def check(self, terms: BatchTerms, held: int, now: float) -> None:
        """`InputError` for a batch that is not taken, beside others that may need `held` bytes."""
        if terms.minimum < self.least:
            raise InputError(
                f"this shuffler hands on nothing below the messages of {self.least:,} people, and this batch would be "
                f"of {terms.minimum:,}: announce a larger minimum"
            )
        if held + terms.most_bytes > self.largest:
            raise InputError(
                f"this batch may need {terms.most_bytes:,} bytes, and this shuffler holds {self.largest:,} at most, of "
                f"which {held:,} are promised: wait until others are collected, ask fewer people or for fewer numbers"
            )
        if not now < terms.closes <= now + LONGEST:
            raise InputError("a batch closes after now, and within 30 days")


PIECE: Final = 1 << 20
"""Bytes of a piece, or one message if it is longer."""


def permuted_pieces(sent: Sequence[bytes], size: int, stream: Stream) -> list[bytes]:
    """What people sent, each some messages of `size` bytes, with all messages in an order drawn uniformly.

    Memory is twice that of the messages, and 40 bytes a message for the order. O(bytes + n log n).

    >>> pieces = permuted_pieces([b"aabb", b"ccdd"], 2, Stream.from_os())
    >>> sorted(b"".join(pieces).decode())
    ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd']
    """
    every = np.frombuffer(b"".join(sent), dtype=np.uint8).reshape(-1, size)
    del sent  # nobody else has it, and it is as large
    order, step = in_any_order(stream, len(every)), max(1, PIECE // size)
    return [every[order[start : start + step]].tobytes() for start in range(0, len(order), step)]


log = logging.getLogger("hazemap.federated.shuffler")

BATCHES: Final = 10_000
"""Batches of one analyser that are known, at most: each stays until it could not be announced again."""
TRIES: Final = 8
"""How often a batch is looked at anew because messages were on their way to the disk."""

_ANNOUNCE = "INSERT INTO batches (batch, terms, state, people, pieces, analyser) VALUES (?, ?, 'open', 0, 0, ?)"
_ONE = "SELECT terms, state, people, pieces, digest, analyser FROM batches WHERE batch = ?"
_HELD = "SELECT terms FROM batches WHERE state <> 'forgotten'"
_EVERY = "SELECT batch, terms FROM batches"
_COUNT = "UPDATE batches SET people = people + 1 WHERE batch = ? AND state = 'open' AND people < ?"
_TAKE = "INSERT INTO submissions (batch, serial, digest, messages) VALUES (?, ?, ?, ?)"
_TAKEN = "SELECT digest FROM submissions WHERE batch = ? AND serial = ?"
_SENT = "SELECT messages FROM submissions WHERE batch = ? ORDER BY serial"
_PIECE = "INSERT INTO permuted (batch, piece, messages) VALUES (?, ?, ?)"
_PERMUTED = (
    "UPDATE batches SET state = 'permuted', pieces = ?, digest = ? WHERE batch = ? AND state = 'open' AND people = ?"
)
_HAND_ON = "SELECT messages FROM permuted WHERE batch = ? AND piece = ?"
_DROP_SENT = "DELETE FROM submissions WHERE batch = ?"
_DROP_PERMUTED = "DELETE FROM permuted WHERE batch = ?"
_FORGOTTEN = "UPDATE batches SET state = 'forgotten', pieces = 0, digest = NULL WHERE batch = ?"
_DROP = "DELETE FROM batches WHERE batch = ?"
_FORGOTTEN_UNTIL = "SELECT value FROM facts WHERE name = 'forgotten until'"
_FORGET_UNTIL = (
    "INSERT INTO facts VALUES ('forgotten until', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_KNOWN = "SELECT count(*) FROM batches WHERE analyser = ?"
_UNKNOWN = "this shuffler knows no such batch: it was not announced here, or with other terms than you were told"


class UnknownBatch(InputError):
    """A batch that was not announced here, or under other terms."""


class BatchOver(ConversationError):
    """A batch that takes no more, or that has nothing left to hand on."""


class BatchState(NamedTuple):
    """How a batch stands: open, permuted or forgotten; its people; what is handed on, in how many pieces."""

    terms: BatchTerms
    state: str
    people: int
    pieces: int
    digest: bytes | None
    analyser: str


class ShufflerService:
    """The batches of one shuffler. Time is an argument, and randomness comes from `stream`."""

    def __init__(
        self,
        store: Store,
        key: HpkeKeyPair,
        limits: BatchLimits | None = None,
        stream: Callable[[], Stream] = Stream.from_os,
    ) -> None:
        self.store, self.key, self.limits = store, key, limits or BatchLimits()
        self._stream = stream
        self._permuting: set[bytes] = set()
        self._one_at_a_time = Lock()

    def announce(self, terms: BatchTerms, now: float, analyser: str = FIRST) -> None:
        """Begin a batch; again, if it is the same. `InputError` for one that is beyond this shuffler's limits."""
        with self._one_at_a_time:
            if self.store.read(_ONE, terms.digest):
                self.check_own(terms.digest, analyser)
                return
            held = sum(BatchTerms.from_bytes(bytes(found)).most_bytes for (found,) in self.store.read(_HELD))
            self.limits.check(terms, held, now)
            if terms.closes <= self._forgotten_until():
                raise InputError("a batch of this time may have been opened here before, and forgotten: close later")
            if self.store.read(_KNOWN, analyser)[0][0] >= BATCHES:
                raise InputError(f"one analyser has {BATCHES:,} batches at most, those of the last weeks included")
            self.store.write_now(Write(_ANNOUNCE, (terms.digest, terms.to_bytes(), analyser)))
        log.info("%s announces a batch of %d to %d people", analyser, terms.minimum, terms.people)

    def state(self, batch: bytes) -> BatchState:
        """How a batch stands; `UnknownBatch` for one that is not known."""
        rows = self.store.read(_ONE, batch)
        if not rows:
            raise UnknownBatch(_UNKNOWN)
        [(terms, state, people, pieces, digest, analyser)] = rows
        known = BatchTerms.from_bytes(bytes(terms))
        return BatchState(known, state, people, pieces, None if digest is None else bytes(digest), analyser)

    def check_own(self, batch: bytes, analyser: str) -> None:
        """`UnknownBatch` for the batch of another analyser, as for one that is not known."""
        if self.state(batch).analyser != analyser:
            raise UnknownBatch(_UNKNOWN)

    def taking(self, batch: bytes, request: bytes, now: float) -> tuple[Write, ...]:
        """What to write so that a person's messages are in a batch; nothing if the same ones are in it already.

        `Refused` for somebody who is not enrolled, or who sends something else a second time; `BatchOver` where a batch
        is closed. A `Contradiction` of the store means that another request was faster: ask again.
        """
        found = self.state(batch)
        if batch in self._permuting:
            raise Unreachable("this batch is about to be handed on: ask again in a moment", 5)
        if found.state != "open" or now > found.terms.closes:
            raise BatchOver("this batch is closed, and takes no more messages")
        sent = read_submission(found.terms, self.key, request)
        digest = sha256(sent.messages).digest()
        earlier = self.store.read(_TAKEN, batch, sent.serial)
        if earlier:
            if bytes(earlier[0][0]) != digest:
                raise Refused("this person's messages are in this batch already; each counts once")
            return ()
        if found.people >= found.terms.people:
            raise BatchOver(f"this batch is full: it is of {found.terms.people:,} people at most")
        count = Write(_COUNT, (batch, found.terms.people), 1)
        return count, Write(_TAKE, (batch, sent.serial, digest, sent.messages))

    def permute(self, batch: bytes) -> BatchState:
        """Put the messages in an order drawn uniformly, once, and forget who sent them; afterwards nothing changes.

        `NotOpened` below the minimum; then everything stays as it was. O(bytes of the batch) in memory, twice.
        """
        with self._one_at_a_time:
            self._permuting.add(batch)
            try:
                return self._permute(batch)
            finally:
                self._permuting.discard(batch)

    def _permute(self, batch: bytes) -> BatchState:
        for _ in range(TRIES):
            found = self.state(batch)
            if found.state == "forgotten":
                raise BatchOver("this batch was handed on, and forgotten")
            if found.state == "permuted":
                return found
            if found.people < found.terms.minimum:
                raise NotOpened(
                    f"{found.people:,} people have sent their messages, and nothing below {found.terms.minimum:,} is "
                    "handed on: wait for more of them"
                )
            try:
                self.store.write_now(*self._permuting_writes(batch, found))
            except Contradiction:  # somebody's messages were on their way to the disk: they are in it now
                continue
            log.info("the messages of %d people are permuted for %s", found.people, found.analyser)
            return self.state(batch)
        raise StoreError("this batch has not as many people as were counted: its messages are not handed on")

    def _permuting_writes(self, batch: bytes, found: BatchState) -> list[Write]:
        sent = (bytes(messages) for (messages,) in self.store.read(_SENT, batch))
        pieces, digest = permuted_pieces(list(sent), found.terms.message_bytes, self._stream()), sha256()
        for piece in pieces:
            digest.update(piece)
        people = sum(map(len, pieces)) // found.terms.bytes_a_person
        return [
            Write(_PERMUTED, (len(pieces), digest.digest(), batch, people), 1),
            *(Write(_PIECE, (batch, number, piece)) for number, piece in enumerate(pieces)),
            Write(_DROP_SENT, (batch,), people),
        ]

    def piece(self, batch: bytes, number: int) -> bytes:
        """A piece of what is handed on; the same bytes each time, until the batch is forgotten."""
        found = self.state(batch)
        if found.state != "permuted":
            raise BatchOver(f"this batch is {found.state}: only a permuted one has something to hand on")
        rows = self.store.read(_HAND_ON, batch, number)
        if not rows:
            raise CodecError(f"this batch has pieces 0 to {found.pieces - 1:,}")
        return bytes(rows[0][0])

    def forget(self, batch: bytes) -> None:
        """Delete all messages of a batch, which was handed on or is given up: it is never opened again."""
        with self._one_at_a_time:
            found = self.state(batch)
            self.store.write_now(*self._forgetting(batch))
        log.info("a batch of %s is forgotten", found.analyser)

    def expire(self, now: float) -> int:
        """Forget every batch that closed longer ago than messages are kept, its name as well; how many they were.

        Until when they closed is written with that, and does not go back with a clock: none is opened a second time.
        """
        with self._one_at_a_time:
            every = {bytes(batch): BatchTerms.from_bytes(bytes(terms)) for batch, terms in self.store.read(_EVERY)}
            old = {batch: terms.closes for batch, terms in every.items() if terms.closes + self.limits.keep < now}
            for batch, closes in old.items():
                until = Write(_FORGET_UNTIL, (str(max(closes, self._forgotten_until())),))
                self.store.write_now(until, *self._forgetting(batch)[:2], Write(_DROP, (batch,)))
        return len(old)

    def _forgotten_until(self) -> int:
        """When the last of the batches closed whose names are forgotten."""
        rows = self.store.read(_FORGOTTEN_UNTIL)
        return int(rows[0][0]) if rows else -1

    def _forgetting(self, batch: bytes) -> tuple[Write, ...]:
        return Write(_DROP_SENT, (batch,)), Write(_DROP_PERMUTED, (batch,)), Write(_FORGOTTEN, (batch,))


TABLES = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE batches (
        batch BLOB PRIMARY KEY,
        terms BLOB NOT NULL,
        state TEXT NOT NULL,
        people BIGINT NOT NULL,
        pieces BIGINT NOT NULL,
        digest BLOB,
        analyser TEXT NOT NULL
    )""",
    """CREATE TABLE submissions (
        batch BLOB NOT NULL REFERENCES batches (batch),
        serial BLOB NOT NULL,
        digest BLOB NOT NULL,
        messages BLOB NOT NULL,
        PRIMARY KEY (batch, serial)
    )""",
    """CREATE TABLE permuted (
        batch BLOB NOT NULL REFERENCES batches (batch),
        piece BIGINT NOT NULL,
        messages BLOB NOT NULL,
        PRIMARY KEY (batch, piece)
    )""",
)
"""One list of tables for every database.

* `facts`: the version, when the clock was looked at, and when the last of the forgotten batches closed.
* `batches`: each batch that was announced, and the name of who did. `state` is open, permuted or forgotten. A row stays
  until the batch could not be announced again, so that nobody opens a batch twice.
* `submissions`: what people sent to open batches, each under their number in this batch, with the digest of it.
* `permuted`: the messages of a permuted batch in the one order that leaves, in pieces. What a person sent is deleted
  in the transaction that writes these, so the order is drawn once, and nothing is kept of who sent what.
"""

SCHEMA = Schema("shuffler version", 1, TABLES)
