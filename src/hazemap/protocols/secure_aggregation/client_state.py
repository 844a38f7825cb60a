"""What a client remembers of a session between two messages: enough to go on after its process was killed."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hazemap.errors import CodecError, InputError
from hazemap.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.protocols.secure_aggregation.session_parameters import HASH, SessionParameters
from hazemap.protocols.secure_aggregation.shamir_sharing import SHARE
from hazemap.protocols.secure_aggregation.stages import Stage
from hazemap.protocols.secure_aggregation.tls_encoding import TlsReader, TlsWriter

_VERSION = 1
_KEY = 32
_GONE = bytes(_KEY)
_SECRETS = 2 * SHARE
_RECORD = struct.Struct(">IB32s32s32s")

HOLDS, DEALS, SHARED = 1, 2, 4


class KnownPeer(NamedTuple):
    """A neighbour whose identity and keys were verified; `letter` is SECRET."""

    position: int
    roles: int
    """HOLDS: has shares of mine. DEALS: sends me shares of its own. SHARED: the server says it has shared."""
    identity: bytes
    letter: bytes
    """the key of the letters between us"""
    masking: bytes
    """its public key for our mask"""

    def __repr__(self) -> str:
        return f"<KnownPeer {self.position} {self.identity.hex()[:16]}…>"


@dataclass(frozen=True)
class ClientState:
    """The state after an answer. Its secrets are forgotten at the first answer that needs them no more.

    A `ClientState` is small and flat, one `bytes` for all neighbours, so that many clients fit into one process.
    """

    stage: Stage
    """what was answered last"""
    terms: SessionParameters
    position: int
    identity: bytes
    """the public half"""
    asked: bytes
    """SHA-256 of the message that was answered"""
    reply: bytes = field(repr=False)
    sealing: bytes = field(default=b"", repr=False)
    """own X25519 key for letters, until SHARES is answered"""
    masking: bytes = field(default=b"", repr=False)
    """own X25519 key for masks, until MASKED is answered"""
    seed: bytes = field(default=b"", repr=False)
    """of the self mask, until MASKED is answered"""
    roll: bytes = b""
    """bits of who sent keys"""
    picks: tuple[int, ...] = ()
    acquaintances: bytes = field(default=b"", repr=False)
    shares: bytes = field(default=b"", repr=False)
    """what others dealt, of each its position and two shares"""
    sharers: bytes = b""
    """bits of who has shared: whom it masked among"""
    survivors: bytes = b""
    """bits of who is in the sum, as assented to"""

    def known(self) -> list[KnownPeer]:
        """All neighbours, ascending."""
        return [KnownPeer(*record) for record in _RECORD.iter_unpack(self.acquaintances)]

    def bitmap(self, bits: bytes) -> Bitmap:
        """The roll, the sharers or the survivors."""
        return Bitmap(self.terms.clients, bits)

    def dealt(self) -> dict[int, tuple[bytes, bytes]]:
        """By dealer: a share of its masking key, and one of its seed."""
        return {
            dealer: (both[:SHARE], both[SHARE:]) for dealer, both in TlsReader(self.shares).numbered(_SECRETS).items()
        }

    def acquainted(self, neighbours: Iterable[KnownPeer]) -> "ClientState":
        """The same with these neighbours."""
        return replace(self, acquaintances=b"".join(_RECORD.pack(*neighbour) for neighbour in neighbours))

    def holding(self, shares: dict[int, bytes]) -> "ClientState":
        """The same with these shares, two of each dealer; own keys, seed and the keys of letters are forgotten."""
        neighbours = [neighbour._replace(letter=_GONE, masking=_GONE) for neighbour in self.known()]
        dealt = TlsWriter().numbered(shares, _SECRETS).done()
        return replace(self.acquainted(neighbours), shares=dealt, sealing=b"", masking=b"", seed=b"")

    def to_bytes(self) -> bytes:
        """Everything, secrets included: to be kept where the device's rows are kept."""
        writer = TlsWriter().number(_VERSION, 1).number(self.stage, 1).opaque(self.terms.to_bytes(), 2)
        writer.number(self.position, 4).fixed(self.identity, _KEY).fixed(self.asked, HASH).opaque(self.reply, 4)
        for secret in (self.sealing, self.masking, self.seed):
            writer.opaque(secret, 1)
        writer.opaque(self.roll, 4).numbers(self.picks).opaque(self.acquaintances, 4)
        return writer.opaque(self.shares, 4).opaque(self.sharers, 4).opaque(self.survivors, 4).done()

    @classmethod
    def from_bytes(cls, data: bytes) -> "ClientState":
        """What `to_bytes` wrote; CodecError for bytes that are no memory of a client."""
        reader = TlsReader(data)
        if reader.number(1) != _VERSION:
            raise CodecError(f"this is no client's memory of version {_VERSION}")
        try:
            stage = Stage(reader.number(1))
        except ValueError:
            raise CodecError("this memory is of no known stage") from None
        if stage > Stage.UNMASK:
            raise CodecError(f"no client answers {stage.name}: this memory is of no stage that is answered")
        terms = SessionParameters.from_bytes(reader.opaque(2))
        memory = cls(
            stage,
            terms,
            position=reader.number(4),
            identity=reader.fixed(_KEY),
            asked=reader.fixed(HASH),
            reply=reader.opaque(4),
            sealing=reader.opaque(1),
            masking=reader.opaque(1),
            seed=reader.opaque(1),
            roll=reader.opaque(4),
            picks=reader.numbers(),
            acquaintances=reader.opaque(4),
            shares=reader.opaque(4),
            sharers=reader.opaque(4),
            survivors=reader.opaque(4),
        )
        reader.end()
        memory._check()
        return memory

    def _check(self) -> None:
        if any(len(secret) not in (0, _KEY) for secret in (self.sealing, self.masking, self.seed)):
            raise CodecError("a key in this memory has a wrong length")
        if len(self.acquaintances) % _RECORD.size or self.position >= self.terms.clients:
            raise CodecError("the neighbours in this memory are damaged")
        try:
            for bits in filter(None, (self.roll, self.sharers, self.survivors)):
                self.bitmap(bits)
        except InputError:
            raise CodecError("a bitmap in this memory is damaged") from None
        if self.shares:
            reader = TlsReader(self.shares)
            reader.numbered(_SECRETS)
            reader.end()
