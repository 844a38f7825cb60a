"""What a session is about: the public parameters that its name is the hash of."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Self

from hazemap.errors import CodecError, InputError
from hazemap.privacy.distributed_noise import DistributedNoise, NoAddedNoise
from hazemap.vdaf.tls_encoding import Form, Structure, TlsReader, TlsWriter, fixed, number

HASH = 32
Hash = Annotated[bytes, fixed(HASH)]
_Number = Annotated[int, number(4)]


class Mode(Enum):
    """What the server is trusted with.

    >>> Mode.MALICIOUS.value
    2
    """

    SEMI_HONEST = 1
    """it follows the protocol and remembers everything"""
    MALICIOUS = 2
    """it may do anything, and the enrolled identities are what clients trust"""


Noise = DistributedNoise | NoAddedNoise
"""What each client adds: a share of noise, or nothing where vectors are reports that were randomised already."""


def _write_noise(writer: TlsWriter, noise: Noise) -> None:
    scale = noise.scale if isinstance(noise, DistributedNoise) else Fraction(0)
    for part in (scale.numerator, scale.denominator):
        writer.opaque(part.to_bytes((part.bit_length() + 7) // 8, "big"), 1)
    writer.number(noise.parties, 4)


def _read_noise(reader: TlsReader) -> Noise:
    scale = Fraction(int.from_bytes(reader.opaque(1), "big"), int.from_bytes(reader.opaque(1), "big"))
    parties = reader.number(4)
    return DistributedNoise(scale, parties) if scale else NoAddedNoise(parties)


@dataclass(frozen=True)
class SessionParameters(Structure):
    """The parameters of one session, all public. Every message and key is bound to them through `session`.

    Clients check them: against each other by the name of the session in every signature, against their own
    `MinimumParameters`, and against the task. What cannot be a session at all is an InputError here.

    >>> terms = SessionParameters(Mode.MALICIOUS, bytes(32), bytes(32), 50, 40, 30, 45, 16, 20,
    ...               DistributedNoise(Fraction(10), 40), roster=bytes(32), graph=bytes(32))
    >>> SessionParameters.from_bytes(terms.to_bytes()) == terms, len(terms.session)
    (True, 32)
    """

    mode: Annotated[Mode, Form(lambda writer, mode: writer.number(mode.value, 1), lambda found: Mode(found.number(1)))]
    task: Hash
    """SHA-256 of the task: what is asked, at which price"""
    nonce: Hash
    """32 bytes never used before"""
    clients: _Number
    """how many are invited"""
    degree: _Number
    """how many peers hold shares of a client's secrets"""
    threshold: _Number
    """how many of them reveal a secret"""
    survivors: _Number
    """the sum is never opened over fewer"""
    size: _Number
    """numbers in a vector"""
    bits: Annotated[int, number(1)]
    """sums are modulo 2^bits"""
    noise: Annotated[Noise, Form(_write_noise, _read_noise)]
    """what each client adds, and how many of them are certain to be in the sum"""
    roster: Hash
    """Merkle root of the identities that are invited, in order"""
    graph: Hash
    """semi-honest: commitment to the seed that orders the ring; malicious: zeros"""

    def __post_init__(self) -> None:
        if any(len(data) != HASH for data in (self.task, self.nonce, self.roster, self.graph)):
            raise InputError(f"task, nonce, roster and graph are {HASH} bytes each")
        if not 2 <= self.clients < 1 << 32 or not 1 <= self.size < 1 << 32 or not 1 <= self.bits <= 32:
            raise InputError(
                f"a session has 2 clients or more, 1 number or more of 1 … 32 bits, "
                f"not {self.clients}, {self.size} and {self.bits}"
            )
        if not 1 <= self.threshold <= self.degree < self.clients or not 1 <= self.survivors <= self.clients:
            raise InputError(
                f"1 <= threshold <= degree < clients and 1 <= survivors <= clients, but threshold is "
                f"{self.threshold}, degree {self.degree}, survivors {self.survivors} and clients {self.clients}"
            )
        if not 1 <= self.noise.parties <= self.survivors:
            raise InputError(f"{self.survivors} survivors cannot be sure of {self.noise.parties} people's noise")
        if self.mode is Mode.MALICIOUS and any(self.graph):
            raise InputError("in malicious mode clients draw their neighbours: the server commits to no graph")
        if self.mode is Mode.SEMI_HONEST and self.degree % 2 and self.degree != self.clients - 1:
            raise InputError(f"on a ring a client has as many neighbours on either side: {self.degree} is odd")

    @cached_property
    def session(self) -> bytes:
        """The name of the session, 32 bytes: SHA-256("hazemap secure sum 1" ‖ terms)."""
        return sha256(b"hazemap secure sum 1" + self.to_bytes()).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote; CodecError for anything else."""
        try:
            terms = super().from_bytes(data)
        except (InputError, ValueError, ZeroDivisionError) as error:
            raise CodecError(f"these are not the parameters of a session: {error}") from error
        if terms.to_bytes() != data:  # a scale that is not in lowest terms
            raise CodecError("the parameters of a session are not in their one encoding")
        return terms


Terms = Annotated[
    SessionParameters,
    Form(
        lambda writer, terms: writer.opaque(terms.to_bytes(), 2),
        lambda reader: SessionParameters.from_bytes(reader.opaque(2)),
    ),
]
"""The parameters within a message."""
