"""Opens what a shuffler handed on, and adds it up: nothing else can be learned from it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hazemap.errors import CodecError, Refused
from hazemap.federated.protocols.secure_aggregation.modular_packing import lifted, reduced, unpack
from hazemap.federated.protocols.shuffle.client import INFO, SUITE
from hazemap.federated.protocols.shuffle.shuffle_parameters import BLOCK_NUMBER, SEALING, ShuffleParameters
from hazemap.machine_code.arrays import Ints
from hazemap.vdaf.hpke import KeyPair

_KEY = SEALING - 16


class OpenedBatch(NamedTuple):
    """The noisy sums, int64[size], and how many people they are over."""

    sums: Ints
    people: int


def opened(terms: ShuffleParameters, key: KeyPair, messages: Sequence[bytes]) -> OpenedBatch:
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
