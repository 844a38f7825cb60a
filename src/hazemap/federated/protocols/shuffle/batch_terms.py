"""What a shuffler has to know of a batch: all of it public, and nothing of what the messages say."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Self

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.shuffle.shuffle_parameters import SEALING
from hazemap.vdaf.tls_encoding import Structure, TlsReader, fixed, number

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
