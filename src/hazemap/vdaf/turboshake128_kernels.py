"""TurboSHAKE128 of many messages of one length, eight at a time, and field elements drawn from it. Imports numba.

Messages are an array uint64[n, 21 blocks], padded: `padded` makes it. The plain twin is `turboshake128`.
"""

import numpy as np

from hazemap.machine_code.arrays import Bytes, Words
from hazemap.machine_code.jit import compiled
from hazemap.vdaf.field64_kernels import MODULUS_64
from hazemap.vdaf.field255_kernels import below_modulus, element
from hazemap.vdaf.keccak_permutation import STATES, permute_eight, permute_one
from hazemap.vdaf.turboshake128 import RATE

LANES = RATE // 8
_TOP = np.uint64(2**63 - 1)


def padded(columns: list[bytes | Bytes], domain: int) -> Words:
    """Messages in rows: columns are bytes that all share, or one row of bytes for each.

    >>> padded([b"ab", np.array([[1], [2]], dtype=np.uint8)], domain=1).shape
    (2, 21)
    """
    rows = max((column.shape[0] for column in columns if isinstance(column, np.ndarray)), default=1)
    parts = [c if isinstance(c, np.ndarray) else np.frombuffer(c, dtype=np.uint8)[None] for c in columns]
    length = sum(part.shape[1] for part in parts) + 1
    message = np.zeros((rows, -(-length // RATE) * RATE), dtype=np.uint8)
    at = 0
    for part in parts:
        message[:, at : at + part.shape[1]] = part
        at += part.shape[1]
    message[:, at] = domain
    message[:, -1] ^= 0x80
    return message.view("<u8").astype(np.uint64, copy=False)


@compiled
def permute(states: Words) -> None:  # pragma: no cover - compiled
    """Keccak's permutation of one state, or of eight at a time: uint64[25, 1 or 8]."""
    if states.shape[1] == 1:
        permute_one(states)
    else:
        permute_eight(states)


@compiled
def absorb(messages: Words, first: int, states: Words) -> int:  # pragma: no cover - compiled
    """The states, one or eight, of as many messages from `first` on; how many these are."""
    some: int = min(states.shape[1], messages.shape[0] - first)
    states[:] = np.uint64(0)
    for block in range(messages.shape[1] // LANES):
        for lane in range(LANES):
            for i in range(some):
                states[lane, i] ^= messages[first + i, block * LANES + lane]
        permute(states)
    return some


@compiled
def squeezed(messages: Words, out: Words) -> None:  # pragma: no cover - compiled
    """The first words of the output of each message: at most the 21 of a block."""
    states = np.empty((25, STATES), dtype=np.uint64)
    for first in range(0, messages.shape[0], STATES):
        some = absorb(messages, first, states)
        for i in range(some):
            for word in range(out.shape[1]):
                out[first + i, word] = states[word, i]


@compiled
def elements64(messages: Words, skipped: int, out: Words) -> None:  # pragma: no cover - compiled
    """Elements of Field64 for each message, `out[n, count]`, after some that are skipped."""
    states = np.empty((25, STATES), dtype=np.uint64)
    drawn = np.empty(STATES, dtype=np.int64)
    count = out.shape[1]
    for first in range(0, messages.shape[0], STATES):
        some = absorb(messages, first, states)
        drawn[:] = -skipped
        while drawn[:some].min() < count:
            for i in range(some):
                at = drawn[i]
                for lane in range(LANES):
                    if states[lane, i] < MODULUS_64:
                        if 0 <= at < count:
                            out[first + i, at] = states[lane, i]
                        at += 1
                drawn[i] = at
            permute_eight(states)


@compiled
def elements255(messages: Words, out: Words) -> None:  # pragma: no cover - compiled
    """Elements of Field255 for each message, `out[n, count, 4]`."""
    states = np.empty((25, STATES), dtype=np.uint64)
    drawn = np.empty(STATES, dtype=np.int64)
    count = out.shape[1]
    for first in range(0, messages.shape[0], STATES):
        some = absorb(messages, first, states)
        drawn[:] = 0
        word = 0
        while drawn[:some].min() < count:
            for lane in range(LANES):
                for i in range(some):
                    at = drawn[i]
                    if at == count:
                        continue
                    x = states[lane, i]
                    out[first + i, at, word] = x & _TOP if word == 3 else x
                    if word == 3 and below_modulus(element(out[first + i], at)):
                        drawn[i] = at + 1
                word = (word + 1) % 4
            permute_eight(states)
