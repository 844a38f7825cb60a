"""What everybody in a shuffle has to know beforehand: all of it is public, and follows from question and batch."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.modular_packing import packed_length, word
from hazemap.federated.protocols.shuffle.parts_security import parts_for
from hazemap.vdaf.tls_encoding import TlsWriter

SECURITY = 60
"""The shuffled parts are within 2^−60 of a function of the sums, unless said otherwise."""

SEALING = 32 + 16
"""Bytes that sealing adds to a message: a public key of X25519, and the tag of AES-128-GCM."""

BLOCK_NUMBER = 4
"""Bytes that say which numbers of the vector a message has parts of."""


@dataclass(frozen=True)
class ShuffleParameters:
    """One shuffled sum of vectors of `size` numbers modulo 2^`bits`.

    A vector is cut in blocks of `block` numbers (the last is filled up with zeros). Each block is split in `parts`
    parts, so many that shuffled parts of `honest` people tell nothing but the sums (`parts_security`), and each part is
    a message of its own. A person sends `messages` of them, all of one length. `minimum` people at least must have sent
    all of theirs.

    >>> terms = ShuffleParameters(bytes(32), size=4_096, bits=17, block=16, honest=90_000, minimum=95_000)
    >>> terms.parts, terms.messages, terms.message_bytes, terms.bytes_a_person
    (25, 6400, 86, 550400)
    """

    task: bytes
    size: int
    bits: int
    block: int
    honest: int
    minimum: int
    security: int = SECURITY

    def __post_init__(self) -> None:
        numbers = (self.size, self.bits, self.block, self.honest, self.minimum, self.security)
        if any(type(number) is not int for number in numbers):
            raise InputError("the parameters of a shuffle are whole numbers")
        word(self.bits)
        if type(self.task) is not bytes or len(self.task) != 32:
            raise InputError("a shuffle is bound to a task by its SHA-256, 32 bytes")
        if not 1 <= self.block <= self.size <= 1 << 24:
            raise InputError("a shuffle adds up 1 to 2^24 numbers, with 1 or more of them in a block")
        if not 1 <= self.honest <= self.minimum:
            raise InputError("of the people in a batch 1 or more are honest, and at most as many as its minimum")
        _ = self.parts

    @classmethod
    def cheapest(
        cls, task: bytes, size: int, bits: int, honest: int, minimum: int, security: int = SECURITY
    ) -> "ShuffleParameters":
        """Those with the block, of a power of two, that makes a person send the fewest bytes."""
        blocks = [1 << k for k in range(11) if 1 << k <= size]
        found = []
        for block in blocks:
            try:
                found.append(cls(task, size, bits, block, honest, minimum, security))
            except InputError:
                if not found:
                    raise
                break  # larger blocks need still more parts
        return min(found, key=lambda terms: terms.bytes_a_person)

    @property
    def blocks(self) -> int:
        """How many blocks a vector has."""
        return -(-self.size // self.block)

    @cached_property
    def parts(self) -> int:
        """In how many parts a block is split."""
        return parts_for(self.honest, self.block * self.bits, self.blocks, self.security)

    @property
    def messages(self) -> int:
        """How many messages a person sends: all in one request, taken whole or not at all."""
        return self.blocks * self.parts

    @property
    def plain_bytes(self) -> int:
        """The length of what is sealed in a message."""
        return BLOCK_NUMBER + packed_length(self.block, self.bits)

    @property
    def message_bytes(self) -> int:
        """The length of a message."""
        return SEALING + self.plain_bytes

    @property
    def bytes_a_person(self) -> int:
        """What a person sends in all."""
        return self.messages * self.message_bytes

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all of these: what every message is bound to."""
        said = TlsWriter().fixed(self.task, 32)
        for number in (self.size, self.bits, self.block, self.honest, self.minimum, self.security):
            said.number(number, 8)
        return sha256(b"hazemap shuffle 1 parts" + said.done()).digest()
