"""XofTurboShake128 of many messages of one length, eight at a time, in machine code. This module imports numba.

Messages are uint64[n, words], as `turboshake128_kernels.padded` makes them; outputs are words, or field elements
uint64[n, length, words of an element].
"""

import numpy as np

from hazemap.machine_code.arrays import Ints, Words
from hazemap.machine_code.jit import compiled
from hazemap.vdaf.keccak_permutation import STATES
from hazemap.vdaf.ntt_field import FIELD64, FIELD128
from hazemap.vdaf.turboshake128_kernels import LANES, absorb, permute

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
