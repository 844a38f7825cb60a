"""Every message of a session, and its one encoding (structures: docs/reference/protocol-messages.md).

A message is uint8 version ‖ uint8 type ‖ 32 bytes naming the session ‖ its fields; an invitation has the terms, of
which the name is the hash, instead. A pair a stage, the server's first:

    KEYS    Invitation → Keys         MASKED  Inbox → Masked
    PICKS   Roll → Picks              ASSENT  Survivors → Assent
    SHARES  Neighbours → Sealed       UNMASK  Assents → Unmask

Whatever bytes come, a decoder gives the one message they are the encoding of, or raises CodecError.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

from hazemap.errors import CodecError
from hazemap.protocols.secure_aggregation import authenticated_encryption as sealing
from hazemap.protocols.secure_aggregation import shamir_sharing as shamir
from hazemap.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.protocols.secure_aggregation.peer_public_keys import Peer, PublicKeys, read_path, write_path
from hazemap.protocols.secure_aggregation.session_parameters import HASH, SessionParameters
from hazemap.protocols.secure_aggregation.signing_identities import SIGNATURE
from hazemap.protocols.secure_aggregation.stages import Stage
from hazemap.protocols.secure_aggregation.tls_encoding import TlsReader, TlsWriter

VERSION = 1
LETTER = 2 * shamir.SHARE + sealing.TAG
"""Bytes of a sealed letter: the shares of two secrets."""


class Message(ABC):
    """What is the same for all messages."""

    kind: ClassVar[int]
    stage: ClassVar[Stage]

    @abstractmethod
    def _write(self, writer: TlsWriter) -> None: ...

    @classmethod
    @abstractmethod
    def _read(cls, reader: TlsReader) -> Self: ...

    def encode(self) -> bytes:
        """Its one encoding."""
        writer = TlsWriter().number(VERSION, 1).number(self.kind, 1)
        self._write(writer)
        return writer.done()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The message of this type that these bytes are; CodecError for all other bytes."""
        message = decode(data)
        if not isinstance(message, cls):
            raise CodecError(f"expected {cls.__name__}, not {type(message).__name__}")
        return message


@dataclass(frozen=True)
class InSession(Message):
    """What is the same for all messages after the invitation: they name their session."""

    session: bytes

    @abstractmethod
    def _fields(self, writer: TlsWriter) -> None: ...

    @classmethod
    @abstractmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]: ...

    def _write(self, writer: TlsWriter) -> None:
        self._fields(writer.fixed(self.session, HASH))

    @classmethod
    def _read(cls, reader: TlsReader) -> Self:
        return cls(reader.fixed(HASH), *cls._values(reader))


@dataclass(frozen=True)
class Invitation(Message):
    """To a client: the terms, its position in the roster, and the proof that it is its identity's."""

    kind: ClassVar[int] = 1
    stage: ClassVar[Stage] = Stage.KEYS
    terms: SessionParameters
    position: int
    proof: tuple[bytes, ...]

    @property
    def session(self) -> bytes:
        """The name that the terms have."""
        return self.terms.session

    def _write(self, writer: TlsWriter) -> None:
        writer.opaque(self.terms.to_bytes(), 2).number(self.position, 4)
        write_path(writer, self.proof)

    @classmethod
    def _read(cls, reader: TlsReader) -> Self:
        return cls(SessionParameters.from_bytes(reader.opaque(2)), reader.number(4), read_path(reader))


@dataclass(frozen=True)
class Keys(InSession):
    """From a client: its public keys of this session."""

    kind: ClassVar[int] = 2
    stage: ClassVar[Stage] = Stage.KEYS
    keys: PublicKeys

    def _fields(self, writer: TlsWriter) -> None:
        self.keys.write(writer)

    @classmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]:
        return (PublicKeys.read(reader),)


@dataclass(frozen=True)
class Roll(InSession):
    """To a client in malicious mode: who has sent keys."""

    kind: ClassVar[int] = 3
    stage: ClassVar[Stage] = Stage.PICKS
    roll: Bitmap

    def _fields(self, writer: TlsWriter) -> None:
        self.roll.write(writer)

    @classmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]:
        return (Bitmap.read(reader),)


@dataclass(frozen=True)
class Picks(InSession):
    """From a client in malicious mode: whom it has drawn to hold its shares, ascending."""

    kind: ClassVar[int] = 4
    stage: ClassVar[Stage] = Stage.PICKS
    picks: tuple[int, ...]

    def _fields(self, writer: TlsWriter) -> None:
        writer.numbers(self.picks)

    @classmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]:
        return (reader.numbers(),)


@dataclass(frozen=True)
class Neighbours(InSession):
    """To a client: who has sent keys, the ring's seed (zeros in malicious mode), and its neighbours, ascending."""

    kind: ClassVar[int] = 5
    stage: ClassVar[Stage] = Stage.SHARES
    roll: Bitmap
    seed: bytes
    peers: tuple[Peer, ...]

    def _fields(self, writer: TlsWriter) -> None:
        self.roll.write(writer)
        writer.fixed(self.seed, HASH).number(len(self.peers), 4)
        for peer in self.peers:
            writer.fixed(peer.encoded, len(peer.encoded))

    @classmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]:
        roll, seed = Bitmap.read(reader), reader.fixed(HASH)
        peers: list[Peer] = []
        for _ in range(reader.number(4)):  # a count that is too large ends with the bytes
            peers.append(Peer.read(reader))
            if len(peers) > 1 and peers[-2].position >= peers[-1].position:
                raise CodecError("the neighbours do not ascend")
        return roll, seed, tuple(peers)


@dataclass(frozen=True)
class Sealed(InSession):
    """From a client: a letter to each of its holders, with their shares of its two secrets."""

    kind: ClassVar[int] = 6
    stage: ClassVar[Stage] = Stage.SHARES
    letters: Mapping[int, bytes] = field(repr=False)

    def _fields(self, writer: TlsWriter) -> None:
        writer.numbered(self.letters, LETTER)

    @classmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]:
        return (reader.numbered(LETTER),)


@dataclass(frozen=True)
class Inbox(InSession):
    """To a client: who has shared, and the letters to it."""

    kind: ClassVar[int] = 7
    stage: ClassVar[Stage] = Stage.MASKED
    sharers: Bitmap
    letters: Mapping[int, bytes] = field(repr=False)

    def _fields(self, writer: TlsWriter) -> None:
        self.sharers.write(writer)
        writer.numbered(self.letters, LETTER)

    @classmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]:
        return Bitmap.read(reader), reader.numbered(LETTER)


@dataclass(frozen=True)
class Masked(InSession):
    """From a client: contribution + noise + masks modulo 2^b, packed; and its signature under who it masked among."""

    kind: ClassVar[int] = 8
    stage: ClassVar[Stage] = Stage.MASKED
    vector: bytes = field(repr=False)
    signature: bytes
    """over `bindings.masked_statement`"""

    def _fields(self, writer: TlsWriter) -> None:
        writer.opaque(self.vector, 4).fixed(self.signature, SIGNATURE)

    @classmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]:
        return reader.opaque(4), reader.fixed(SIGNATURE)


@dataclass(frozen=True)
class Survivors(InSession):
    """To a client: whose vectors the sum will be over."""

    kind: ClassVar[int] = 9
    stage: ClassVar[Stage] = Stage.ASSENT
    survivors: Bitmap

    def _fields(self, writer: TlsWriter) -> None:
        self.survivors.write(writer)

    @classmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]:
        return (Bitmap.read(reader),)


@dataclass(frozen=True)
class Assent(InSession):
    """From a client: its signature under `bindings.assent_statement`."""

    kind: ClassVar[int] = 10
    stage: ClassVar[Stage] = Stage.ASSENT
    signature: bytes

    def _fields(self, writer: TlsWriter) -> None:
        writer.fixed(self.signature, SIGNATURE)

    @classmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]:
        return (reader.fixed(SIGNATURE),)


@dataclass(frozen=True)
class Assents(InSession):
    """To a client: what its peers signed, to compare with what it was told itself."""

    kind: ClassVar[int] = 11
    stage: ClassVar[Stage] = Stage.UNMASK
    assents: Mapping[int, bytes] = field(repr=False)
    """`threshold` of its holders, under the survivors"""
    masked: Mapping[int, bytes] = field(repr=False)
    """malicious mode: every surviving dealer's, under who it masked among; else none"""

    def _fields(self, writer: TlsWriter) -> None:
        writer.numbered(self.assents, SIGNATURE).numbered(self.masked, SIGNATURE)

    @classmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]:
        return reader.numbered(SIGNATURE), reader.numbered(SIGNATURE)


@dataclass(frozen=True)
class Unmask(InSession):
    """From a client: its shares of the seeds of those who survived, and of the masking keys of those who did not."""

    kind: ClassVar[int] = 12
    stage: ClassVar[Stage] = Stage.UNMASK
    seeds: Mapping[int, bytes] = field(repr=False)
    keys: Mapping[int, bytes] = field(repr=False)

    def _fields(self, writer: TlsWriter) -> None:
        writer.numbered(self.seeds, shamir.SHARE).numbered(self.keys, shamir.SHARE)

    @classmethod
    def _values(cls, reader: TlsReader) -> tuple[object, ...]:
        seeds, keys = reader.numbered(shamir.SHARE), reader.numbered(shamir.SHARE)
        if not seeds.keys().isdisjoint(keys):
            raise CodecError("both shares of one client")
        if not all(map(shamir.is_share, (*seeds.values(), *keys.values()))):
            raise CodecError("a share is not written as it should be")
        return seeds, keys


MESSAGES: tuple[type[Message], ...] = (
    *(Invitation, Keys, Roll, Picks, Neighbours, Sealed),
    *(Inbox, Masked, Survivors, Assent, Assents, Unmask),
)
"""All types of messages."""
_BY_KIND = {message.kind: message for message in MESSAGES}


def decode(data: bytes) -> Message:
    """The message that these bytes are; CodecError for bytes that are none.

    >>> decode(Picks(bytes(32), (3, 5)).encode())  # doctest: +ELLIPSIS
    Picks(session=b'...', picks=(3, 5))
    """
    reader = TlsReader(data)
    version, kind = reader.number(1), reader.number(1)
    if version != VERSION or kind not in _BY_KIND:
        raise CodecError(f"version {version}, type {kind} is no message of version {VERSION}")
    message = _BY_KIND[kind]._read(reader)
    reader.end()
    return message
