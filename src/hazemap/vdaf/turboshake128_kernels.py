"""TurboSHAKE128 of many messages of one length, eight at a time, and what is drawn from it. This module imports numba.

The states of Keccak-p[1600, 12] (FIPS 202, 3.3; RFC 9861, 2.1) are an array uint64[25, 8]: lane x + 5 y of state `i` is
`states[x + 5 * y, i]`. One vector of eight words holds a lane of all; where registers are narrower, the compiler cuts
it. Messages are an array uint64[n, 21 blocks], padded: `padded` makes it. Outputs are words or field elements,
uint64[n, length, words of an element]. The plain twin is in `xofs`.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from hazemap.vdaf.compiled_loops import Bytes, Ints, Words, compiled
from hazemap.vdaf.field_kernels import MODULUS_64, below255, element255
from hazemap.vdaf.ntt_field import FIELD64, FIELD128
from hazemap.vdaf.xofs import RATE, ROUND_CONSTANTS, STEPS

STATES = 8


def _permutation(width: int) -> Any:
    """The permutation of `width` states, as an intrinsic over an array with room for them in each row."""

    @intrinsic
    def permute(_typing: Any, states: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word, index = ir.IntType(64), ir.IntType(64)
            vector = ir.VectorType(word, width)
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            places = [
                builder.bitcast(builder.gep(data, [ir.Constant(index, width * lane)]), vector.as_pointer())
                for lane in range(25)
            ]
            name = f"llvm.fshl.v{width}i64"
            rotate = builder.module.globals.get(name) or ir.Function(
                builder.module, ir.FunctionType(vector, [vector] * 3), name
            )

            def rotated(x: Any, by: int) -> Any:
                return builder.call(rotate, [x, x, ir.Constant(vector, [by] * width)])

            def sum_of(*terms: Any) -> Any:
                total = terms[0]
                for term in terms[1:]:
                    total = builder.xor(total, term)
                return total

            a = [builder.load(place, align=8) for place in places]
            for constant in ROUND_CONSTANTS:
                parity = [sum_of(*a[x::5]) for x in range(5)]
                theta = [sum_of(parity[(x + 4) % 5], rotated(parity[(x + 1) % 5], 1)) for x in range(5)]
                a = [sum_of(a[i], theta[i % 5]) for i in range(25)]
                moved = list(a)
                for here, there, by in STEPS:
                    moved[there] = rotated(a[here], by)
                ones = ir.Constant(vector, [-1] * width)
                a = [
                    sum_of(
                        moved[i],
                        builder.and_(builder.xor(moved[i - i % 5 + (i + 1) % 5], ones), moved[i - i % 5 + (i + 2) % 5]),
                    )
                    for i in range(25)
                ]
                a[0] = sum_of(a[0], ir.Constant(vector, [constant] * width))
            for lane, place in zip(a, places, strict=True):
                builder.store(lane, place, align=8)
            return context.get_dummy_value()

        return types.void(states), code

    return permute


_eight = _permutation(STATES)
_one = _permutation(1)


@compiled
def permute_eight(states: Words) -> None:  # pragma: no cover - compiled
    """Permute eight states, uint64[25, 8], in place."""
    _eight(states)


@compiled
def permute_one(state: Words) -> None:  # pragma: no cover - compiled
    """Permute one state, uint64[25, 1], in place."""
    _one(state)


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
                    if word == 3 and below255(element255(out[first + i], at)):
                        drawn[i] = at + 1
                word = (word + 1) % 4
            permute_eight(states)


MODULUS64 = np.uint64(FIELD64.modulus)
LOW128, HIGH128 = np.uint64(FIELD128.modulus % 2**64), np.uint64(FIELD128.modulus >> 64)


@compiled
def take_elements(
    states: Words, lane: int, elements: Words, progress: Ints, half: Words
) -> None:  # pragma: no cover - compiled
    """Take a block's numbers that are below the modulus: uint64[length, 1 or 2], from `progress[lane, 0]` on.

    A block of 21 words can end in the middle of a number of two: then `progress[lane, 1]` is 1, and `half[lane]` its
    low word.
    """
    place, begun = progress[lane, 0], progress[lane, 1]
    length, low = elements.shape[0], half[lane]
    if elements.shape[1] == 1:
        for word in range(LANES):
            x = states[word, lane]
            if place < length and x < MODULUS64:
                elements[place, 0] = x
                place += 1
    else:
        for word in range(LANES):
            x = states[word, lane]
            if begun == 0:
                low, begun = x, 1
            else:
                begun = 0
                if place < length and (x < HIGH128 or (x == HIGH128 and low < LOW128)):
                    elements[place, 0], elements[place, 1] = low, x
                    place += 1
    progress[lane, 0], progress[lane, 1] = place, begun
    half[lane] = low


@compiled
def hash_messages(messages: Words, words: Words, elements: Words) -> None:  # pragma: no cover - compiled
    """Write the first words of each output, uint64[n, at most a block]; and its field elements."""
    together = 1 if messages.shape[0] == 1 else STATES
    states = np.empty((25, together), dtype=np.uint64)
    progress, half = np.zeros((STATES, 2), dtype=np.int64), np.zeros(STATES, dtype=np.uint64)
    for first in range(0, messages.shape[0], together):
        some = absorb(messages, first, states)
        progress[:] = 0
        for lane in range(some):
            for word in range(words.shape[1]):
                words[first + lane, word] = states[word, lane]
        waiting = elements.shape[1] > 0
        while waiting:
            waiting = False
            for lane in range(some):
                if progress[lane, 0] < elements.shape[1]:
                    take_elements(states, lane, elements[first + lane], progress, half)
                    waiting = waiting or progress[lane, 0] < elements.shape[1]
            if waiting:
                permute(states)
