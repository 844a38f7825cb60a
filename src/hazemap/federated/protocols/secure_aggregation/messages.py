"""Every message of a session, and its one encoding (structures: docs/reference/protocol-messages.md).

A message is uint8 version ‖ uint8 type ‖ 32 bytes naming the session ‖ its fields; an invitation has the terms, of
which the name is the hash, instead. A pair a stage, the server's first:

    KEYS    Invitation → Keys         MASKED  Inbox → Masked
    PICKS   Roll → Picks              ASSENT  Survivors → Assent
    SHARES  Neighbours → Sealed    UNMASK  Assents → Unmask

Whatever bytes come, a decoder gives the one message they are the encoding of, or raises CodecError.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from hashlib import sha256
from struct import pack
from typing import Annotated, ClassVar, Self

from hazemap.errors import CodecError
from hazemap.federated.protocols.secure_aggregation import authenticated_encryption as sealing
from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
from hazemap.federated.protocols.secure_aggregation import shamir_sharing as shamir
from hazemap.federated.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.federated.protocols.secure_aggregation.key_agreement import KEY
from hazemap.federated.protocols.secure_aggregation.session_parameters import Hash, Terms
from hazemap.privacy.signing_identities import SIGNATURE
from hazemap.vdaf.tls_encoding import Form, Structure, TlsReader, TlsWriter, fixed, number, numbered, opaque, part


class Stage(IntEnum):
    """What the clients are asked for.

    >>> Stage.KEYS < Stage.MASKED < Stage.OPENED
    True
    """

    KEYS = 1
    """public keys of this session, signed"""
    PICKS = 2
    """malicious mode: whom a client draws to hold its shares"""
    SHARES = 3
    """shares of a client's two secrets, sealed for their holders"""
    MASKED = 4
    """the vector under its masks"""
    ASSENT = 5
    """a signature under who sent a vector"""
    UNMASK = 6
    """of each peer the share of one of its two secrets"""
    OPENED = 7
    """the end: the sum is known"""
    FAILED = 8
    """the end: nothing was opened"""


VERSION = 1
LETTER = 2 * shamir.SHARE + sealing.MORE
"""Bytes of a sealed letter: the shares of two secrets."""

_PRIME = 2**255 - 19  # a public key is a number below this, or it is another key in disguise (RFC 7748, section 5)
_PATH = 32  # a roster has fewer than 2³² clients: no proof is longer


def _public_key(reader: TlsReader) -> bytes:
    key = reader.fixed(KEY)
    if int.from_bytes(key, "little") >= _PRIME:
        raise CodecError("a public key is not written as it should be")
    return key


def _write_path(writer: TlsWriter, path: tuple[bytes, ...]) -> None:
    """A proof of the roster: uint8 how many hashes, then the hashes."""
    writer.number(len(path), 1)
    for sibling in path:
        writer.fixed(sibling, roster.LENGTH)


def _read_path(reader: TlsReader) -> tuple[bytes, ...]:
    length = reader.number(1)
    if length > _PATH:
        raise CodecError(f"a proof has at most {_PATH} hashes, not {length}")
    return tuple(reader.fixed(roster.LENGTH) for _ in range(length))


Position = Annotated[int, number(4)]
PublicKey = Annotated[bytes, Form(lambda writer, key: writer.fixed(key, KEY), _public_key)]
Signature = Annotated[bytes, fixed(SIGNATURE)]
Clients = Annotated[Bitmap, part(Bitmap)]
Proof = Annotated[tuple[bytes, ...], Form(_write_path, _read_path)]
Letters = Annotated[Mapping[int, bytes], numbered(LETTER)]
Signatures = Annotated[Mapping[int, bytes], numbered(SIGNATURE)]
Shares = Annotated[Mapping[int, bytes], numbered(shamir.SHARE)]
Numbers = Annotated[tuple[int, ...], Form(TlsWriter.numbers, TlsReader.numbers)]


@dataclass(frozen=True)
class PublicKeys(Structure):
    """What a client shows of its secrets in one session: signed, so that nobody can put others in their place."""

    sealing: PublicKey
    """X25519: letters to it are sealed under what is agreed with this key"""
    masking: PublicKey
    """X25519: pair masks"""
    commitment: Hash
    """SHA-256 of the self-mask seed, bound to session and position"""
    signature: Signature
    """Ed25519, by the client's identity, over `keys_statement`"""


@dataclass(frozen=True)
class Peer(Structure):
    """A neighbour as the server presents it: each part is proven, by the roster's root or by a signature."""

    position: Position
    identity: Annotated[bytes, fixed(KEY)]
    proof: Proof
    keys: Annotated[PublicKeys, part(PublicKeys)]

    @cached_property
    def encoded(self) -> bytes:
        """Its encoding, made once: the server sends it to all its neighbours."""
        return self.to_bytes()


def _write_peers(writer: TlsWriter, peers: tuple[Peer, ...]) -> None:
    writer.number(len(peers), 4)
    for peer in peers:
        writer.fixed(peer.encoded, len(peer.encoded))


def _read_peers(reader: TlsReader) -> tuple[Peer, ...]:
    peers: list[Peer] = []
    for _ in range(reader.number(4)):  # a count that is too large ends with the bytes
        peers.append(Peer.read(reader))
        if len(peers) > 1 and peers[-2].position >= peers[-1].position:
            raise CodecError("the neighbours do not ascend")
    return tuple(peers)


class SecureSumMessage(Structure):
    """What is the same for all messages: `kind` is the type's number, `stage` where it belongs."""

    kind: ClassVar[int]
    stage: ClassVar[Stage]

    def __init_subclass__(cls, kind: int = 0, stage: Stage = Stage.KEYS) -> None:
        cls.kind, cls.stage = kind, stage

    def encode(self) -> bytes:
        """Its one encoding."""
        return self.write(TlsWriter().number(VERSION, 1).number(self.kind, 1)).done()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The message of this type that these bytes are; CodecError for all other bytes."""
        message = decode(data)
        if not isinstance(message, cls):
            raise CodecError(f"expected {cls.__name__}, not {type(message).__name__}")
        return message


@dataclass(frozen=True)
class InSession(SecureSumMessage):
    """What is the same for all messages after the invitation: they name their session."""

    session: Hash


@dataclass(frozen=True)
class Invitation(SecureSumMessage, kind=1, stage=Stage.KEYS):
    """To a client: the terms, its position in the roster, and the proof that it is its identity's."""

    terms: Terms
    position: Position
    proof: Proof

    @property
    def session(self) -> bytes:
        """The name that the terms have."""
        return self.terms.session


@dataclass(frozen=True)
class Keys(InSession, kind=2, stage=Stage.KEYS):
    """From a client: its public keys of this session."""

    keys: Annotated[PublicKeys, part(PublicKeys)]


@dataclass(frozen=True)
class Roll(InSession, kind=3, stage=Stage.PICKS):
    """To a client in malicious mode: who has sent keys."""

    roll: Clients


@dataclass(frozen=True)
class Picks(InSession, kind=4, stage=Stage.PICKS):
    """From a client in malicious mode: whom it has drawn to hold its shares, ascending."""

    picks: Numbers


@dataclass(frozen=True)
class Neighbours(InSession, kind=5, stage=Stage.SHARES):
    """To a client: who has sent keys, the ring's seed (zeros in malicious mode), and its neighbours, ascending."""

    roll: Clients
    seed: Hash
    peers: Annotated[tuple[Peer, ...], Form(_write_peers, _read_peers)]


@dataclass(frozen=True)
class Sealed(InSession, kind=6, stage=Stage.SHARES):
    """From a client: a letter to each of its holders, with their shares of its two secrets."""

    letters: Letters = field(repr=False)


@dataclass(frozen=True)
class Inbox(InSession, kind=7, stage=Stage.MASKED):
    """To a client: who has shared, and the letters to it."""

    sharers: Clients
    letters: Letters = field(repr=False)


@dataclass(frozen=True)
class Masked(InSession, kind=8, stage=Stage.MASKED):
    """From a client: contribution + noise + masks modulo 2^b, packed; and its signature under who it masked among."""

    vector: Annotated[bytes, opaque(4)] = field(repr=False)
    signature: Signature
    """over `masked_statement`"""


@dataclass(frozen=True)
class Survivors(InSession, kind=9, stage=Stage.ASSENT):
    """To a client: whose vectors the sum will be over."""

    survivors: Clients


@dataclass(frozen=True)
class Assent(InSession, kind=10, stage=Stage.ASSENT):
    """From a client: its signature under `assent_statement`."""

    signature: Signature


@dataclass(frozen=True)
class Assents(InSession, kind=11, stage=Stage.UNMASK):
    """To a client: what its peers signed, to compare with what it was told itself."""

    assents: Signatures = field(repr=False)
    """`threshold` of its holders, under the survivors"""
    masked: Signatures = field(repr=False)
    """malicious mode: every surviving dealer's, under who it masked among; else none"""


@dataclass(frozen=True)
class Unmask(InSession, kind=12, stage=Stage.UNMASK):
    """From a client: its shares of the seeds of those who survived, and of the masking keys of those who did not."""

    seeds: Shares = field(repr=False)
    keys: Shares = field(repr=False)

    @classmethod
    def read(cls, reader: TlsReader) -> Self:
        """What `write` wrote, if it tells one share of each client, each an element of the field."""
        message = super().read(reader)
        if not message.seeds.keys().isdisjoint(message.keys):
            raise CodecError("both shares of one client")
        if not all(map(shamir.is_share, (*message.seeds.values(), *message.keys.values()))):
            raise CodecError("a share is not written as it should be")
        return message


MESSAGES: tuple[type[SecureSumMessage], ...] = (
    *(Invitation, Keys, Roll, Picks, Neighbours, Sealed),
    *(Inbox, Masked, Survivors, Assent, Assents, Unmask),
)
"""All types of messages."""
_BY_KIND = {message.kind: message for message in MESSAGES}


def decode(data: bytes) -> SecureSumMessage:
    """The message that these bytes are; CodecError for bytes that are none.

    >>> decode(Picks(bytes(32), (3, 5)).encode())  # doctest: +ELLIPSIS
    Picks(session=b'...', picks=(3, 5))
    """
    reader = TlsReader(data)
    version, kind = reader.number(1), reader.number(1)
    if version != VERSION or kind not in _BY_KIND:
        raise CodecError(f"version {version}, type {kind} is no message of version {VERSION}")
    message = _BY_KIND[kind].read(reader)
    reader.end()
    return message


def keys_statement(session: bytes, position: int, seal: bytes, mask: bytes, commitment: bytes) -> bytes:
    """What an identity signs about its keys of a session, to seal and to mask with."""
    return b"hazemap 1 keys" + session + pack(">I", position) + seal + mask + commitment


def masked_statement(session: bytes, position: int, sharers: Bitmap) -> bytes:
    """What an identity signs about whom its vector is masked among: its neighbours of these."""
    return b"hazemap 1 masked" + session + pack(">I", position) + sha256(sharers.bits).digest()


def assent_statement(session: bytes, position: int, sharers: Bitmap, survivors: Bitmap) -> bytes:
    """What an identity signs about whose vectors the sum is over: the one such statement it makes in a session."""
    both = sha256(sharers.bits).digest() + sha256(survivors.bits).digest()
    return b"hazemap 1 assent" + session + pack(">I", position) + both
