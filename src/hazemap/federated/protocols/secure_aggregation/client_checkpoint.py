"""What a client remembers of a session between two messages: enough to go on after its process was killed."""

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Annotated, NamedTuple, Self

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.federated.protocols.secure_aggregation.messages import Numbers, Stage
from hazemap.federated.protocols.secure_aggregation.modular_packing import packed_length
from hazemap.federated.protocols.secure_aggregation.session_parameters import Hash, Terms
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import SHARE
from hazemap.vdaf.tls_encoding import Form, Structure, TlsReader, TlsWriter, fixed, number, opaque

_VERSION = 2
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


def _read_stage(reader: TlsReader) -> Stage:
    try:
        stage = Stage(reader.number(1))
    except ValueError:
        raise CodecError("this memory is of no known stage") from None
    if stage > Stage.UNMASK:
        raise CodecError(f"no client answers {stage.name}: this memory is of no stage that is answered")
    return stage


Secret = Annotated[bytes, opaque(1)]
Text = Annotated[bytes, opaque(4)]


@dataclass(frozen=True)
class ClientState(Structure):
    """The state after an answer. Its secrets are forgotten at the first answer that needs them no more.

    A `ClientState` is small and flat, one `bytes` for all neighbours, so that many clients fit into one process.
    """

    stage: Annotated[Stage, Form(lambda writer, stage: writer.number(stage, 1), _read_stage)]
    """what was answered last"""
    terms: Terms
    position: Annotated[int, number(4)]
    identity: Annotated[bytes, fixed(_KEY)]
    """the public half"""
    asked: Hash
    """SHA-256 of the message that was answered"""
    reply: Text = field(repr=False)
    sealing: Secret = field(default=b"", repr=False)
    """own X25519 key for letters, until SHARES is answered"""
    masking: Secret = field(default=b"", repr=False)
    """own X25519 key for masks, until MASKED is answered"""
    seed: Secret = field(default=b"", repr=False)
    """of the self mask, until MASKED is answered"""
    said: Hash = field(default=_GONE, repr=False)
    """SHA-256 of the contribution as it is packed, until MASKED is answered"""
    contribution: Text = field(default=b"", repr=False)
    """packed modulo 2^b, and compressed, until MASKED is answered"""
    roll: Text = b""
    """bits of who sent keys"""
    picks: Numbers = ()
    acquaintances: Text = field(default=b"", repr=False)
    shares: Text = field(default=b"", repr=False)
    """what others dealt, of each its position and two shares"""
    sharers: Text = b""
    """bits of who has shared: whom it masked among"""
    survivors: Text = b""
    """bits of who is in the sum, as assented to"""

    def known(self) -> list[KnownPeer]:
        """All neighbours, ascending."""
        return [KnownPeer(*record) for record in _RECORD.iter_unpack(self.acquaintances)]

    def bitmap(self, bits: bytes) -> Bitmap:
        """The roll, the sharers or the survivors."""
        return Bitmap(self.terms.clients, bits)

    def packed(self) -> bytes:
        """The contribution, packed; CodecError where it is not the one that was committed to. No more is unpacked."""
        most = packed_length(self.terms.size, self.terms.bits)
        try:
            found = zlib.decompressobj().decompress(self.contribution, most + 1)
        except zlib.error:
            found = b""
        if sha256(found).digest() != self.said:
            raise CodecError("the contribution in this memory is damaged")
        return found

    def dealt(self) -> dict[int, tuple[bytes, bytes]]:
        """By dealer: a share of its masking key, and one of its seed."""
        return {
            dealer: (both[:SHARE], both[SHARE:]) for dealer, both in TlsReader(self.shares).numbered(_SECRETS).items()
        }

    def acquainted(self, neighbours: Iterable[KnownPeer]) -> "ClientState":
        """The same with these neighbours."""
        return replace(self, acquaintances=b"".join(_RECORD.pack(*neighbour) for neighbour in neighbours))

    def holding(self, shares: dict[int, bytes]) -> "ClientState":
        """The same with these shares, two of each dealer; own keys, seed, contribution and the keys of letters are
        forgotten.
        """
        neighbours = [neighbour._replace(letter=_GONE, masking=_GONE) for neighbour in self.known()]
        dealt = TlsWriter().numbered(shares, _SECRETS).done()
        forgotten = replace(self, sealing=b"", masking=b"", seed=b"", said=_GONE, contribution=b"")
        return replace(forgotten.acquainted(neighbours), shares=dealt)

    def write(self, writer: TlsWriter) -> TlsWriter:
        """Everything, secrets included: to be kept where the device's rows are kept."""
        return super().write(writer.number(_VERSION, 1))

    @classmethod
    def read(cls, reader: TlsReader) -> Self:
        """What `write` wrote; CodecError for bytes that are no memory of a client."""
        if reader.number(1) != _VERSION:
            raise CodecError(f"this is no client's memory of version {_VERSION}")
        memory = super().read(reader)
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
