"""The last level of many incremental point functions, whose nodes TurboSHAKE128 expands. This module imports numba.

At the leaves the output function is a random oracle, and values are in Field255. The plain twin is
`idpf.IdpfBBCGGI21.eval`.
"""

import numpy as np

from hazemap.machine_code.arrays import Bytes, Ints, Words
from hazemap.machine_code.jit import compiled
from hazemap.vdaf.field255_kernels import Element, below_modulus, canonical255, element, store, sum255
from hazemap.vdaf.keccak_permutation import STATES, permute_eight
from hazemap.vdaf.turboshake128_kernels import LANES

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_TOP = np.uint64(2**63 - 1)
_WORD_BITS = 64


@compiled
def leaf_values(
    messages: Words, seed_at: int, seed_words: Words, control_words: Bytes, steps: Ints, seeds: Words,
    controls: Bytes, corrections: Words, values: Words,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """The values of leaves for each report, `values[report, which, leaf]`, of four words each.

    `messages[use, report]` is a padded message of TurboSHAKE128, with zeros where the seed stands, from byte `seed_at`
    on; the rest is as in `idpf_kernels.walk`. Cost: 2 permutations a leaf, eight at once.
    """
    most = seeds.shape[1]
    children = np.empty((2 * most, 2), dtype=np.uint64)
    bits = np.empty(2 * most, dtype=np.uint64)
    states = np.empty((25, STATES), dtype=np.uint64)
    group = np.zeros((STATES, 2), dtype=np.uint64)
    for report in range(seeds.shape[0]):
        data, auth = values[report, 0], values[report, 1]
        data_word, auth_word = element(corrections[report], 0), element(corrections[report], 1)
        for first in range(0, most, STATES):
            some = min(STATES, most - first)
            for i in range(some):
                group[i, 0], group[i, 1] = seeds[report, first + i, 0], seeds[report, first + i, 1]
            absorb_seeded(messages[0, report], seed_at, group, states)
            for i in range(some):
                mask = _ZERO - np.uint64(controls[report, first + i])
                for side in range(2):
                    child = 2 * (first + i) + side
                    low = states[2 * side, i]
                    bits[child] = (low & _ONE) ^ (mask & np.uint64(control_words[report, side]))
                    children[child, 0] = (low & ~_ONE) ^ (mask & seed_words[report, 0])
                    children[child, 1] = states[2 * side + 1, i] ^ (mask & seed_words[report, 1])
        for first in range(0, steps.size, STATES):
            some = min(STATES, steps.size - first)
            for i in range(some):
                child = steps[first + i]
                group[i, 0], group[i, 1] = children[child, 0], children[child, 1]
            absorb_seeded(messages[1, report], seed_at, group, states)
            for i in range(some):
                mask = _ZERO - bits[steps[first + i]]
                store(corrected(drawn_value(states, i, 0), data_word, mask), data, first + i)
                store(corrected(drawn_value(states, i, 1), auth_word, mask), auth, first + i)


@compiled
def corrected(x: Element, word: Element, mask: np.uint64) -> Element:  # pragma: no cover - compiled
    """The sum where the mask is ones, the element itself where it is zeros."""
    return canonical255(sum255(x, (word[0] & mask, word[1] & mask, word[2] & mask, word[3] & mask)))


@compiled
def absorb_seeded(message: Words, seed_at: int, seeds: Words, states: Words) -> None:  # pragma: no cover - compiled
    """The states of eight messages that differ in a seed of two words, from some byte on."""
    shift, lane_at = np.uint64(8 * (seed_at % 8)), seed_at // 8
    back = np.uint64(_WORD_BITS) - shift
    for block in range(message.size // LANES):
        for lane in range(25):
            word = message[block * LANES + lane] if lane < LANES else _ZERO
            for i in range(STATES):
                states[lane, i] = (states[lane, i] if block else _ZERO) ^ word
        for part in range(3):
            lane = lane_at + part - block * LANES
            if 0 <= lane < LANES:
                for i in range(STATES):
                    low = seeds[i, part] << shift if part < 2 else _ZERO
                    high = seeds[i, part - 1] >> back if part and shift else _ZERO
                    states[lane, i] ^= low | high
        permute_eight(states)


@compiled
def drawn_value(states: Words, state: int, which: int) -> Element:  # pragma: no cover - compiled
    """One of two field elements, of the words after a seed.

    A block has room for four draws: that fewer than two of them are elements has a chance below 2^-700.
    """
    found = 0
    for at in range(2, 18, 4):
        x = (states[at, state], states[at + 1, state], states[at + 2, state], states[at + 3, state] & _TOP)
        if below_modulus(x):
            if found == which:
                return x
            found += 1
    return _ZERO, _ZERO, _ZERO, _ZERO
