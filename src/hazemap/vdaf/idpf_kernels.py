"""Evaluation of many incremental point functions along one tree of nodes. This module imports numba.

Reports are independent: each has its own keys of AES. `tree_steps` says which nodes of each level there are. The plain
twin is `idpf.IdpfBBCGGI21.eval`.
"""

from typing import Any

import numpy as np

from hazemap.machine_code.arrays import Bytes, Ints, Words
from hazemap.machine_code.jit import compiled
from hazemap.vdaf.aes128_fixed_key import GROUP, expand_key, hash_blocks
from hazemap.vdaf.aes128_instructions import AVAILABLE
from hazemap.vdaf.field64_kernels import MODULUS_64

NODE = 4
"""Words of a node on the way: its seed, and its control bit twice, as words of ones or zeros."""
_ONE = np.uint64(1)


@compiled
def step_in_turn(
    extend: Words, convert: Words, correction: Words, steps: Ints, first: int, count: int, parents: Words,
    children: Words, before: Words, drawn: Words, onward: bool,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """The twin of `idpf_step_instructions.step_nodes`, one thing after another, by whatever hash there is."""
    blocks = np.zeros((count + GROUP, 2), dtype=np.uint64)
    for i in range(count):
        parent = steps[first + i] >> 1
        blocks[i, 0] = parents[parent, 0] ^ np.uint64(steps[first + i] & 1)
        blocks[i, 1] = parents[parent, 1]
    hash_blocks(extend, blocks, count)
    for i in range(count):  # without a branch: control bits are secret
        parent, side = steps[first + i] >> 1, np.uint64(steps[first + i] & 1)
        mask, child = parents[parent, 2], blocks[i, 0]
        blocks[i, 0] = (child & ~_ONE) ^ (mask & correction[0])
        blocks[i, 1] ^= mask & correction[1]
        control = np.uint64(0) - ((child & _ONE) ^ (mask & (correction[2] ^ (correction[3] & side))))
        children[i, 2], children[i, 3] = control, control
    if drawn.shape[0]:
        for i in range(count):
            before[i, 0], before[i, 1] = blocks[i, 0], blocks[i, 1]
            drawn[i, 0], drawn[i, 1] = blocks[i, 0] ^ _ONE, blocks[i, 1]
        hash_blocks(convert, drawn, count)
    if onward:
        hash_blocks(convert, blocks, count)
    for i in range(count):
        children[i, 0], children[i, 1] = blocks[i, 0], blocks[i, 1]


step_nodes: Any = step_in_turn
if AVAILABLE:
    from hazemap.vdaf import idpf_step_instructions

    step_nodes = idpf_step_instructions.step_nodes


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
    elements drawn for each last node, uncorrected. Cost: 2 blocks of AES a step, and 1 for elements; at the
    last level 1 is spared if its seeds are not wanted.
    """
    levels = offsets.size - 1
    most = seeds.shape[1]
    for down in range(levels):
        most = max(most, offsets[down + 1] - offsets[down])
    here = np.zeros((most + GROUP, NODE), dtype=np.uint64)
    there = np.zeros((most + GROUP, NODE), dtype=np.uint64)
    extend = np.empty((11, 2), dtype=np.uint64)
    convert = np.empty((11, 2), dtype=np.uint64)
    correction = np.empty(4, dtype=np.uint64)
    moves = np.zeros(steps.size + GROUP, dtype=np.int64)
    moves[: steps.size] = steps
    nothing = np.empty((0, 2), dtype=np.uint64)
    before = np.empty((most + GROUP if drawn.shape[1] else 0, 2), dtype=np.uint64)
    values = np.empty((most + GROUP if drawn.shape[1] else 0, 2), dtype=np.uint64)
    for report in range(aes_keys.shape[0]):
        expand_key(aes_keys[report, 0, 0], aes_keys[report, 0, 1], extend)
        expand_key(aes_keys[report, 1, 0], aes_keys[report, 1, 1], convert)
        for node in range(seeds.shape[1]):
            mask = np.uint64(0) - np.uint64(controls[report, node])
            here[node, 0], here[node, 1] = seeds[report, node, 0], seeds[report, node, 1]
            here[node, 2], here[node, 3] = mask, mask
        for down in range(levels):
            left, right = control_words[report, level + down, 0], control_words[report, level + down, 1]
            correction[0], correction[1] = seed_words[report, level + down, 0], seed_words[report, level + down, 1]
            correction[2], correction[3] = np.uint64(left), np.uint64(left ^ right)
            count = offsets[down + 1] - offsets[down]
            room = values if down == levels - 1 else nothing
            onward = down < levels - 1 or end_seeds.shape[1] > 0
            step_nodes(extend, convert, correction, moves, offsets[down], count, here, there, before, room, onward)
            here, there = there, here
        for node in range(drawn.shape[1]):
            drawn[report, node, 0], drawn[report, node, 1] = values[node, 0], values[node, 1]
            if values[node, 0] >= MODULUS_64 or values[node, 1] >= MODULUS_64:
                redraw(convert, before[node], drawn[report, node])
        for node in range(end_seeds.shape[1]):
            end_seeds[report, node, 0], end_seeds[report, node, 1] = here[node, 0], here[node, 1]
        for node in range(end_controls.shape[1]):
            end_controls[report, node] = np.uint8(here[node, 2] & _ONE)
