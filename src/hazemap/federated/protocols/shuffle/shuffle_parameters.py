"""What everybody in a shuffle has to know beforehand: all of it is public, and follows from question and batch.

`ShuffleParameters` is for people and the analyser; `BatchTerms` is what a shuffler has to know of a batch, and nothing
of what the messages say. `parts_for` says in how many parts a person splits what they add, so that shuffled parts tell
nothing but the sum.

The protocol is that of Ishai et al. (2006), with the analysis of Balle et al. (2020, lemma 5.2) derived anew, with
every constant: docs/concepts/shuffle.md. n honest people split each a group element in m + 1 parts, in a group of 2^g
elements. Their shuffled parts are, but for a total-variation distance τ, a function of the sum alone, with

    τ ≤ ½ √(E[2^(g(C − 1))] − 1),

C being the number of connected components of a random directed graph on n vertices, m edges out of and into each.
Here the expectation is bounded from above in whole rationals.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import sha256
from math import factorial, prod
from typing import Annotated, Self

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.secure_aggregation.modular_packing import packed_length, word
from hazemap.vdaf.tls_encoding import Structure, TlsReader, TlsWriter, fixed, number

MOST_PARTS = 512
"""Parts that are looked for."""

FEWEST_HONEST = 19
"""Honest people that a shuffle needs, at least: below, the parts needed grow without use."""

_E = Fraction(2_718_281_829, 10**9)  # above e


def excess(honest: int, parts: int, group_bits: int) -> Fraction | None:
    """E[2^(g(C − 1))] − 1 at most, for `parts` = m + 1; None where this bound shows nothing.

    Σ_k t_k over k = 2 … n classes that no part leaves, t_k = (1/k!) Π_{j<k} λ_j, with
    λ_j = 3 · 2^g (m − 1)!/Π_{i<m} (m(n − j) + i). As t falls and then rises, t_3 … t_n are at most the larger of the
    two ends.

    >>> round(float(excess(1_000, 8, 16)) * 2**40, 3)
    0.001
    """
    n, m = honest, parts - 1
    if m < 3 or n < FEWEST_HONEST:
        return None
    size = 3 << group_bits

    def step(j: int) -> Fraction:
        return Fraction(size * factorial(m - 1), prod(m * (n - j) + i for i in range(1, m)))

    second = step(1) / 2
    third = second * step(2) / 3
    end = size * factorial(m - 1) * _E**m / (m ** (m - 1) * Fraction(n - 1) ** m)  # t_n ≤ end^(n−1)/n
    if step(3) > 4 or end > Fraction(1, 2):
        return None
    halvings = int(1 / end).bit_length() - 1  # end ≤ 2^−halvings
    last = Fraction(1, n << halvings * min(n - 1, 4096))
    return second + (n - 2) * max(third, last)


def is_secure(honest: int, parts: int, group_bits: int, blocks: int, security: int) -> bool:
    """Whether `blocks` sums together are within 2^−security of a function of the sums: blocks · τ ≤ 2^−security."""
    found = excess(honest, parts, group_bits)
    return found is not None and found * blocks**2 * (1 << 2 * security) <= 4


@lru_cache(maxsize=1024, typed=True)
def parts_for(honest: int, group_bits: int, blocks: int = 1, security: int = 60) -> int:
    """The least number of parts that is enough; `InputError` for too few honest people.

    >>> parts_for(1_000, 16), parts_for(100_000, 16), parts_for(100_000, 272, blocks=256)
    (14, 10, 25)
    """
    if min(group_bits, blocks, security) < 1:
        raise InputError("parts are for sums of at least 1 bit, in at least 1 block, for at least 1 bit of security")
    if honest >= FEWEST_HONEST:
        low = high = 3
        while high < MOST_PARTS and not is_secure(honest, high, group_bits, blocks, security):
            low, high = high, min(2 * high, MOST_PARTS)
        if is_secure(honest, high, group_bits, blocks, security):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if is_secure(honest, middle, group_bits, blocks, security) else (middle, high)
            return high
    raise InputError(
        f"among {honest:,} honest people {MOST_PARTS} parts of {group_bits:,} bits are not enough for a security of "
        f"2^-{security}: ask more people, or put fewer numbers in a message"
    )


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
    parts, so many that shuffled parts of `honest` people tell nothing but the sums (`parts_for`), and each part is
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
        for each in (self.size, self.bits, self.block, self.honest, self.minimum, self.security):
            said.number(each, 8)
        return sha256(b"hazemap shuffle 1 parts" + said.done()).digest()


MOST_BYTES = 1 << 25
"""Bytes that a person sends to a batch, at most."""

MOST_PEOPLE = 1 << 24
"""People in a batch, at most."""

_VERSION = 1


@dataclass(frozen=True)
class BatchTerms(Structure):
    """One batch: who may send to it, how much, and how few people are never handed on.

    `issuer` signs the credentials of those who may (Ed25519), `analyser` is the key (X25519) that messages are sealed
    for, and `contents` the digest of what they are about, which the shuffler does not learn. A person sends `messages`
    of `message_bytes` each. `minimum` people at least, `people` at most. The shuffler takes nothing after `closes`,
    seconds since 1970. `digest` names the batch: a device that knows what it was told to expect computes it, so a
    shuffler that was told something else does not know the batch that the device sends to.

    >>> terms = BatchTerms(1, bytes(16), bytes(32), bytes(32), bytes(32), 4, 86, 19, 30, 1_800_000_000)
    >>> BatchTerms.from_bytes(terms.to_bytes()) == terms, len(terms.to_bytes()), terms.bytes_a_person
    (True, 137, 344)
    """

    version: Annotated[int, number(1)]
    nonce: Annotated[bytes, fixed(16)]
    issuer: Annotated[bytes, fixed(32)]
    analyser: Annotated[bytes, fixed(32)]
    contents: Annotated[bytes, fixed(32)]
    messages: Annotated[int, number(4)]
    message_bytes: Annotated[int, number(4)]
    minimum: Annotated[int, number(4)]
    people: Annotated[int, number(4)]
    closes: Annotated[int, number(8)]

    def __post_init__(self) -> None:
        numbers = (self.version, self.messages, self.message_bytes, self.minimum, self.people, self.closes)
        if any(type(each) is not int for each in numbers):
            raise InputError("the terms of a batch are whole numbers and bytes")
        if self.version != _VERSION:
            raise InputError(f"this hazemap shuffles by version {_VERSION} of its batches, not by {self.version}")
        if [len(each) for each in (self.nonce, self.issuer, self.analyser, self.contents)] != [16, 32, 32, 32]:
            raise InputError("a batch names its issuer, analyser and contents by 32 bytes each, and has a nonce of 16")
        if self.messages < 1 or self.message_bytes <= SEALING or self.bytes_a_person > MOST_BYTES:
            raise InputError(
                f"a person sends 1 message or more of more than {SEALING} bytes, and {MOST_BYTES:,} bytes at most"
            )
        if not 1 <= self.minimum <= self.people <= MOST_PEOPLE:
            raise InputError(f"a batch is of its minimum to {MOST_PEOPLE:,} people")
        if not 0 <= self.closes < 1 << 40:
            raise InputError("a batch closes at a time in seconds since 1970")

    @property
    def bytes_a_person(self) -> int:
        """Of a person's messages, without what is around them."""
        return self.messages * self.message_bytes

    @property
    def most_bytes(self) -> int:
        """Of all messages of as many people as there may be."""
        return self.people * self.bytes_a_person

    @property
    def digest(self) -> bytes:
        """The name of the batch."""
        return sha256(b"hazemap shuffle 1 batch" + self.to_bytes()).digest()

    @classmethod
    def read(cls, reader: TlsReader) -> Self:
        """What `write` wrote; `CodecError` for terms that cannot be."""
        try:
            return super().read(reader)
        except InputError as error:
            raise CodecError(str(error)) from None
