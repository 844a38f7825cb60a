"""Evaluation of many incremental point functions along one tree of nodes. This module imports numba.

Reports are independent: each has its own keys of AES. `tree_steps` says which nodes of each level there are. The plain
twin is `idpf.IdpfBBCGGI21.eval`.
"""

import numpy as np

from hazemap.arrays import Bytes, Ints, Words
from hazemap.jit import compiled
from hazemap.protocols.vdaf.aes128_fixed_key import GROUP, expand_key, hash_blocks
from hazemap.protocols.vdaf.field64_kernels import MODULUS_64

_ONE = np.uint64(1)


@compiled
def walk(
    aes_keys: Words,
    seed_words: Words,
    control_words: Bytes,
    steps: Ints,
    offsets: Ints,
    level: int,
    seeds: Words,
    controls: Bytes,
    end_seeds: Words,
    end_controls: Bytes,
    drawn: Words,
) -> None:  # pragma: no cover - compiled
    """Go down some levels, from the nodes of the one above `level`, for each report.

    `aes_keys[report, use]` are two words; `seed_words[report, level]` too; `control_words[report, level]` are bits.
    Step `s` is to the left (even) or right (odd) child of node `s // 2` of the level above; those of the i-th level
    are `steps[offsets[i] : offsets[i + 1]]`. `drawn[report, node]` are, where there is room, the two field
    elements drawn for each last node, uncorrected. Cost: 2 blocks of AES a step, and 1 for elements.
    """
    levels = offsets.size - 1
    most = seeds.shape[1]
    for down in range(levels):
        most = max(most, offsets[down + 1] - offsets[down])
    most += GROUP
    here = np.zeros((most, 2), dtype=np.uint64)
    there = np.zeros((most, 2), dtype=np.uint64)
    masks = np.zeros(most, dtype=np.uint64)
    next_masks = np.zeros(most, dtype=np.uint64)
    extend = np.empty((11, 2), dtype=np.uint64)
    convert = np.empty((11, 2), dtype=np.uint64)
    values = np.zeros((most if drawn.shape[1] else 0, 2), dtype=np.uint64)
    for report in range(aes_keys.shape[0]):
        expand_key(aes_keys[report, 0, 0], aes_keys[report, 0, 1], extend)
        expand_key(aes_keys[report, 1, 0], aes_keys[report, 1, 1], convert)
        for node in range(seeds.shape[1]):
            here[node, 0], here[node, 1] = seeds[report, node, 0], seeds[report, node, 1]
            masks[node] = np.uint64(0) - np.uint64(controls[report, node])
        for down in range(levels):
            count = offsets[down + 1] - offsets[down]
            among = steps[offsets[down] : offsets[down + 1]]
            descend(
                extend, seed_words[report, level + down], control_words[report, level + down],
                among, here, masks, there, next_masks,
            )  # fmt: skip
            if down == levels - 1 and drawn.shape[1]:
                for node in range(count):
                    values[node, 0], values[node, 1] = there[node, 0] ^ _ONE, there[node, 1]
                hash_blocks(convert, values, count)
                for node in range(count):
                    drawn[report, node, 0], drawn[report, node, 1] = values[node, 0], values[node, 1]
                    if values[node, 0] >= MODULUS_64 or values[node, 1] >= MODULUS_64:
                        redraw(convert, there[node], drawn[report, node])
            hash_blocks(convert, there, count)
            here, there = there, here
            masks, next_masks = next_masks, masks
        for node in range(end_seeds.shape[1]):
            end_seeds[report, node, 0], end_seeds[report, node, 1] = here[node, 0], here[node, 1]
            end_controls[report, node] = np.uint8(masks[node] & _ONE)


@compiled
def descend(
    key: Words, seed_word: Words, control_word: Bytes, steps: Ints, seeds: Words, masks: Words, found: Words,
    found_masks: Words,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """The corrected seeds and control bits of children, a bit as a word of ones or zeros; before `convert`."""
    low, high = seed_word[0], seed_word[1]
    left, differ = np.uint64(control_word[0]), np.uint64(control_word[0] ^ control_word[1])
    for i in range(steps.size):
        parent = steps[i] >> 1
        found[i, 0] = seeds[parent, 0] ^ np.uint64(steps[i] & 1)
        found[i, 1] = seeds[parent, 1]
        found_masks[i] = masks[parent]
    hash_blocks(key, found, steps.size)
    for i in range(steps.size):  # in order and without a branch, so that it is done for several at once
        mask, child = found_masks[i], found[i, 0]
        found[i, 0] = (child & ~_ONE) ^ (mask & low)
        found[i, 1] ^= mask & high
        found_masks[i] = np.uint64(0) - ((child & _ONE) ^ (mask & (left ^ (differ & np.uint64(steps[i])))))


@compiled
def redraw(key: Words, seed: Words, element: Words) -> None:  # pragma: no cover - compiled
    """The first two words below the modulus of Field64 among 30 that a seed expands to.

    Once in 2^31 nodes the first two will not do; that fewer than two of 30 will do has a chance below 2^-900.
    """
    blocks = np.empty((GROUP, 2), dtype=np.uint64)
    for i in range(GROUP):
        blocks[i, 0], blocks[i, 1] = seed[0] ^ np.uint64(i), seed[1]
    hash_blocks(key, blocks, GROUP)
    found = 0
    for i in range(2, 2 * GROUP):
        if blocks[i // 2, i % 2] < MODULUS_64 and found < 2:
            element[found] = blocks[i // 2, i % 2]
            found += 1
