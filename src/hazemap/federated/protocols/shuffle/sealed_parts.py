"""A person's noisy vector in sealed parts, all of one length, and the sum that the analyser finds in everybody's.

Each part of a vector is uniform, and all of them but one are independent: modulo 2^bits. The analyser opens what a
shuffler handed on and adds it up: nothing else can be learned from it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.protocols.secure_aggregation.modular_packing import Words, lifted, pack, reduced, unpack, word
from hazemap.federated.protocols.shuffle.shuffle_parameters import BLOCK_NUMBER, SEALING, ShuffleParameters
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream
from hazemap.vdaf.hpke import Aead, CipherSuite, HpkeKeyPair, Kdf, Kem
from hazemap.vdaf.tls_encoding import TlsWriter


def split(stream: Stream, vector: Ints, bits: int, parts: int) -> Words:
    """Parts of a vector, [parts, size], whose sum modulo 2^bits is the vector: all but the last are uniform.

    O(parts · size).

    >>> parts = split(Stream.from_os(), np.array([5, -1]), 8, 4)
    >>> parts.shape, (parts.sum(axis=0) % 256).tolist()
    ((4, 2), [5, 255])
    """
    if parts < 2:
        raise InputError(f"a vector is split in 2 parts or more, not in {parts}")
    kind = word(bits)
    made = np.empty((parts, len(vector)), dtype=kind)
    words = stream.words((parts - 1) * len(vector)).reshape(parts - 1, -1)
    made[:-1] = words >> np.uint64(64 - bits)
    rest = reduced(vector, bits) - made[:-1].sum(axis=0, dtype=kind)
    made[-1] = rest & kind((1 << bits) - 1)
    return made


SUITE = CipherSuite(Kem.X25519_HKDF_SHA256, Kdf.HKDF_SHA256, Aead.AES_128_GCM)
"""What messages are sealed with, for the analyser: the shuffler opens none."""

INFO = b"hazemap shuffle 1 part"


def messages(terms: ShuffleParameters, public: bytes, noisy: Ints, stream: Stream) -> list[bytes]:
    """All messages of one person, whose vector int64[size] has their share of the noise in it already.

    Each block is split apart from the others. Costs some 100 µs a message. Send all in one request, in any order: the
    shuffler permutes them.
    """
    if noisy.shape != (terms.size,):
        raise InputError(f"this shuffle adds up vectors of {terms.size:,} numbers, not of {len(noisy):,}")
    made = []
    for number in range(terms.blocks):
        block = noisy[number * terms.block : (number + 1) * terms.block]
        for part in split(stream, np.pad(block, (0, terms.block - len(block))), terms.bits, terms.parts):
            plain = TlsWriter().number(number, 4).fixed(pack(part, terms.bits), terms.plain_bytes - 4).done()
            randomness = stream.words(4).tobytes()
            enc, payload = SUITE.seal(public, INFO, terms.digest, plain, randomness)
            made.append(enc + payload)
    return made


_KEY = SEALING - 16


class OpenedBatch(NamedTuple):
    """The noisy sums, int64[size], and how many people they are over."""

    sums: Ints
    people: int


def opened(terms: ShuffleParameters, key: HpkeKeyPair, messages: Sequence[bytes]) -> OpenedBatch:
    """The sums of a batch; `Refused` if it is not whole: then the sums would be random numbers, and nothing is shown.

    Whole is a batch of whole people, at least as many as the minimum, in which each block has as many parts as they
    make. O(messages · block), some 100 µs a message.
    """
    people, left = divmod(len(messages), terms.messages)
    if left or people < terms.minimum:
        raise Refused(
            f"a batch has {terms.messages:,} messages of each of {terms.minimum:,} people or more; found "
            f"{len(messages):,} messages: it is incomplete, and is not opened"
        )
    counts = np.zeros(terms.blocks, dtype=np.int64)
    sums = np.zeros((terms.blocks, terms.block), dtype=np.int64)
    for message in messages:
        if len(message) != terms.message_bytes:
            raise Refused(f"a message of this batch has {terms.message_bytes:,} bytes: another one was handed on")
        plain = SUITE.open(key, message[:_KEY], INFO, terms.digest, message[_KEY:])
        number = int.from_bytes(plain[:BLOCK_NUMBER], "big")
        if number >= terms.blocks:
            raise Refused("a message speaks of numbers that were not asked for: the batch is not opened")
        try:
            part = unpack(plain[BLOCK_NUMBER:], terms.block, terms.bits)
        except CodecError as error:
            raise Refused(f"a message of this batch cannot be read, and the batch is not opened: {error}") from error
        counts[number] += 1
        sums[number] += part
    if (counts != people * terms.parts).any():
        raise Refused(
            f"each block has {terms.parts:,} parts of each person, but one has more and another fewer: somebody split "
            "their vector otherwise, and the batch is not opened"
        )
    whole = lifted(reduced(sums.ravel()[: terms.size], terms.bits), terms.bits)
    return OpenedBatch(whole, people)
