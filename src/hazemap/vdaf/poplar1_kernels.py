"""What Poplar1's servers do to many reports in machine code: point functions and sketch. This module imports numba.

Point functions are evaluated along one tree of nodes (`EvaluatedPrefixes` says which there are). Reports are
independent: each has its own keys of AES. A node is four words: its seed, and its control bit twice, as words of ones
or zeros. Where the processor has AES instructions, all that becomes of a node in a step stays in registers: the hash
that extends it, its correction, and the hash that converts it. At the leaves the output function is TurboSHAKE128, a
random oracle, and values are in Field255. The plain twin is `idpf.IdpfBBCGGI21.eval`.

The sketch is that of one-hot vectors (BBCGGI21, appendix C.4). For shares of data x and of the authenticators k x, and
random numbers r that clients do not know, a server adds up r x, r^2 x and r k x. Of a vector that is zero but for at
most a single one, these sums z of both servers fulfil z0^2 - z1 + k z0 - z2 = 0; of any other they do with a chance of
at most 2/|F|.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from hazemap.vdaf.aes128_kernels import AVAILABLE, GROUP, WORD, WORDS, expand_key, hash_blocks
from hazemap.vdaf.compiled_loops import Bytes, Ints, Words, compiled, inlined
from hazemap.vdaf.field_kernels import (
    MODULUS_64,
    Element,
    LongSum,
    accumulated255,
    below255,
    canonical255,
    element255,
    mask64,
    multiply_add,
    negative64,
    negative255,
    product255,
    reduced64,
    reduced255,
    store255,
    sum64,
    sum255,
)
from hazemap.vdaf.turboshake128_kernels import LANES, STATES, permute_eight

_multiply_add: Any = multiply_add
_ZERO, _ONE, _TOP = np.uint64(0), np.uint64(1), np.uint64(2**63 - 1)
_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)
_WORD_BITS = 64

BLOCKS = WORDS // 2
"""Nodes of one register."""
_TOGETHER = 8
"""Registers whose hashes are under way at once."""
_LANE, _VECTOR, _BLOCK, _NODE = ir.IntType(32), *(ir.VectorType(WORD, size) for size in (WORDS, 2, 4))


class _Code:
    """Instructions that are being written: `data` are the arrays and numbers that they work on."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.builder = builder
        self.data = [
            context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
            for kind, value in zip(signature.args, arguments, strict=True)
        ]

    def load(self, array: Any, word: Any, kind: Any) -> Any:
        """A word, or several, of an array."""
        place = self.builder.gep(array, [word])
        return self.builder.load(self.builder.bitcast(place, kind.as_pointer()), align=8)

    def store(self, value: Any, array: Any, row: Any, width: int) -> None:
        """Write a row of an array, or several."""
        place = self.builder.gep(array, [self.builder.mul(row, number(width))])
        self.builder.store(value, self.builder.bitcast(place, value.type.as_pointer()), align=8)

    def shuffled(self, x: Any, y: Any, places: list[int]) -> Any:
        """Words of two vectors, in another order."""
        return self.builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(_LANE, len(places)), places))

    def repeated(self, x: Any, *places: int) -> Any:
        """Two words of a vector, in each block of a register."""
        return self.shuffled(x, x, list(places) * BLOCKS)

    def within(self, x: Any, *places: int) -> Any:
        """Two words of each block of a register, in that block."""
        return self.shuffled(x, x, [2 * block + place for block in range(BLOCKS) for place in places])

    def instruction(self, name: str) -> Any:
        """A round of AES."""
        name = f"llvm.x86.aesni.{name}{'' if WORDS == 2 else '.256'}"
        kind = ir.FunctionType(_VECTOR, [_VECTOR, _VECTOR])
        return self.builder.module.globals.get(name) or ir.Function(self.builder.module, kind, name)

    def hashed(self, keys: Any, blocks: list[Any]) -> list[Any]:
        """The hashes of all blocks of some registers."""
        xor = self.builder.xor
        sigma = [xor(self.within(x, 1, 0), self.builder.and_(x, every(0, -1))) for x in blocks]
        state = [xor(x, self.repeated(self.load(keys, number(0), _BLOCK), 0, 1)) for x in sigma]
        for index in range(1, 11):
            key = self.repeated(self.load(keys, number(2 * index), _BLOCK), 0, 1)
            encrypt = self.instruction("aesenc" if index < 10 else "aesenclast")
            state = [self.builder.call(encrypt, [x, key]) for x in state]
        return [xor(x, mask) for x, mask in zip(state, sigma, strict=True)]

    def parents(self, steps: Any, first: Any, nodes: Any) -> tuple[Any, Any, Any]:
        """Of some steps: the seeds of the nodes above, their control bits as masks, and the sides, each a register."""
        rows, side = [], every(0, 0)
        for own in range(BLOCKS):
            step = self.load(steps, self.builder.add(first, number(own)), WORD)
            rows.append(self.load(nodes, self.builder.mul(self.builder.lshr(step, number(1)), number(4)), _NODE))
            bit = self.builder.and_(step, number(1))
            side = self.builder.insert_element(side, bit, ir.Constant(_LANE, 2 * own))
        places = [4 * own + word for own in range(BLOCKS) for word in (0, 1)]
        seeds, masks = (self.shuffled(rows[0], rows[-1], [place + more for place in places]) for more in (0, 2))
        return seeds, masks, side

    def corrected(self, child: Any, mask: Any, side: Any, word: Any) -> tuple[Any, Any]:
        """Of a register of children: their seeds, and their control bits, in both words of each."""
        xor, and_ = self.builder.xor, self.builder.and_
        left, differ = self.repeated(word, 2, 2), self.repeated(word, 3, 3)
        control = and_(mask, xor(left, and_(differ, self.within(side, 0, 0))))
        bits = xor(and_(self.within(child, 0, 0), every(1, 1)), control)
        return xor(and_(child, every(-2, -1)), and_(mask, self.repeated(word, 0, 1))), bits


def number(value: int) -> Any:
    """A word that is known."""
    return ir.Constant(WORD, value)


def every(*words: int) -> Any:
    """A register with two words that are known in each block."""
    return ir.Constant(_VECTOR, list(words) * BLOCKS)


def _step(draws: bool, onward: bool) -> Any:
    """The step of `GROUP` nodes, as an intrinsic.

    With the elements of each node, if it is for the last level; with seeds that are converted, if one goes onward.
    """

    @intrinsic
    def step(
        _typing: Any, extend: Any, convert: Any, correction: Any, steps: Any, first: Any, parents: Any, children: Any,
        row: Any, before: Any, drawn: Any,
    ) -> Any:  # fmt: skip
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            code = _Code(context, builder, signature, arguments)
            extend_keys, convert_keys, correction_word, moves, at, above, below, place, kept, values = code.data
            word = code.load(correction_word, number(0), _NODE)
            for half in range(0, GROUP, _TOGETHER * BLOCKS):
                nodes = range(half, min(GROUP, half + _TOGETHER * BLOCKS), BLOCKS)
                begun = [code.parents(moves, builder.add(at, number(node)), above) for node in nodes]
                extended = code.hashed(extend_keys, [builder.xor(seeds, side) for seeds, _, side in begun])
                found = [
                    code.corrected(child, mask, side, word)
                    for child, (_, mask, side) in zip(extended, begun, strict=True)
                ]
                seeds = [each for each, _ in found]
                if draws:
                    elements = code.hashed(convert_keys, [builder.xor(x, every(1, 0)) for x in seeds])
                    for node, x, y in zip(nodes, seeds, elements, strict=True):
                        code.store(x, kept, builder.add(place, number(node)), 2)
                        code.store(y, values, builder.add(place, number(node)), 2)
                seeds = code.hashed(convert_keys, seeds) if onward else seeds
                for node, x, (_, bits) in zip(nodes, seeds, found, strict=True):
                    mask = builder.sub(every(0, 0), bits)
                    for own in range(BLOCKS):
                        each = code.shuffled(x, mask, [2 * own, 2 * own + 1, WORDS + 2 * own, WORDS + 2 * own + 1])
                        code.store(each, below, builder.add(place, number(node + own)), 4)
            return context.get_dummy_value()

        kinds = (extend, convert, correction, steps, first, parents, children, row, before, drawn)
        return types.void(*kinds), write

    return step


_walked: Any = _step(draws=False, onward=True)
_drawn: Any = _step(draws=True, onward=True)
_ended: Any = _step(draws=True, onward=False)


@compiled
def step_by_instructions(
    extend: Words, convert: Words, correction: Words, steps: Ints, first: int, count: int, parents: Words,
    children: Words, before: Words, drawn: Words, onward: bool,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """From nodes of a level to `count` of the next: `children[i]` by step `first + i` of `steps`, from `parents`.

    `correction` is the word of the level: a seed, the control bit to the left, and whether that to the right differs.
    Where there is room in `drawn`, also the two words drawn for each child, and its seed `before` they are; then, if
    nobody goes `onward`, children have control bits, and their seeds are of no use. All is done in groups: there are
    rows up to the next multiple of `GROUP`, and steps after the last.
    """
    for row in range(0, count, GROUP):
        if drawn.shape[0] and not onward:
            _ended(extend, convert, correction, steps, first + row, parents, children, row, before, drawn)
        elif drawn.shape[0]:
            _drawn(extend, convert, correction, steps, first + row, parents, children, row, before, drawn)
        else:
            _walked(extend, convert, correction, steps, first + row, parents, children, row, before, drawn)


NODE = 4
"""Words of a node on the way: its seed, and its control bit twice, as words of ones or zeros."""


@compiled
def step_in_turn(
    extend: Words, convert: Words, correction: Words, steps: Ints, first: int, count: int, parents: Words,
    children: Words, before: Words, drawn: Words, onward: bool,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """The twin of `step_by_instructions`, one thing after another, by whatever hash there is."""
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


step_nodes: Any = step_by_instructions if AVAILABLE else step_in_turn


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


@compiled
def leaf_values(
    messages: Words, seed_at: int, seed_words: Words, control_words: Bytes, steps: Ints, seeds: Words,
    controls: Bytes, corrections: Words, values: Words,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """The values of leaves for each report, `values[report, which, leaf]`, of four words each.

    `messages[use, report]` is a padded message of TurboSHAKE128, with zeros where the seed stands, from byte `seed_at`
    on; the rest is as in `walk`. Cost: 2 permutations a leaf, eight at once.
    """
    most = seeds.shape[1]
    children = np.empty((2 * most, 2), dtype=np.uint64)
    bits = np.empty(2 * most, dtype=np.uint64)
    states = np.empty((25, STATES), dtype=np.uint64)
    group = np.zeros((STATES, 2), dtype=np.uint64)
    for report in range(seeds.shape[0]):
        data, auth = values[report, 0], values[report, 1]
        data_word, auth_word = element255(corrections[report], 0), element255(corrections[report], 1)
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
                store255(corrected(drawn_value(states, i, 0), data_word, mask), data, first + i)
                store255(corrected(drawn_value(states, i, 1), auth_word, mask), auth, first + i)


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
        if below255(x):
            if found == which:
                return x
            found += 1
    return _ZERO, _ZERO, _ZERO, _ZERO


_NODES_TOGETHER = 1 << 12
"""Nodes whose products are added up before they are reduced."""
FourWords = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@compiled
def finish64(
    drawn: Words, controls: Bytes, corrections: Words, negative: bool, random: Words, data: Words, sums: Words
) -> None:  # pragma: no cover - compiled
    """For each report, correct what was drawn for its nodes, keep the data, and add the sketch to `sums[report, 3]`.

    `drawn[report, node, 2]` are elements of Field64, `corrections[report, 2]` too; `random[report, node]`. The sketch
    is linear in authenticators, so their correction is added to it once; that of shares that are to be negated is that
    of the shares, negated.
    """
    nodes = data.shape[1]
    for report in range(data.shape[0]):
        pairs = drawn[report].reshape(2 * nodes)
        for first in range(0, nodes, _NODES_TOGETHER):
            last = min(nodes, first + _NODES_TOGETHER)
            once, twice, auth, corrected = sketch64(
                pairs[2 * first : 2 * last],
                controls[report][first:last],
                corrections[report, 0],
                negative,
                random[report][first:last],
                data[report][first:last],
            )
            low, high = _multiply_add(corrected, corrections[report, 1], _ZERO, _ZERO)
            sketch = once, twice, sum64(auth, reduced64(low, high))
            for i in range(3):
                sums[report, i] = sum64(sums[report, i], negative64(sketch[i]) if negative else sketch[i])


@compiled
def sketch64(
    pairs: Words, controls: Bytes, correction: np.uint64, negative: bool, random: Words, data: Words
) -> FourWords:  # pragma: no cover - compiled
    """Of fewer than 2^29 nodes: keep the data; the sums of r x, r^2 x, r y, and r of the nodes with control bits.

    x is what is drawn first for a node, corrected; y what is drawn second. There is no branch, and no number is longer
    than a word: products are added up as four halves of words each, and reduced once.
    """
    o0, o1, c0, c1 = _ZERO, _ZERO, _ZERO, _ZERO
    t0, t1, t2, t3 = _ZERO, _ZERO, _ZERO, _ZERO
    a0, a1, a2, a3 = _ZERO, _ZERO, _ZERO, _ZERO
    for node in range(data.size):
        mask, r = mask64(controls[node] != 0), random[node]
        x = sum64(pairs[2 * node], correction & mask)
        data[node] = negative64(x) if negative else x
        h0, h1, h2, h3 = halves(x, r)
        middle = h1 + (h0 >> _HALF)
        product = reduced64((h0 & _LOW) | (middle << _HALF), h2 + (middle >> _HALF) + (h3 << _HALF))
        o0, o1 = o0 + (product & _LOW), o1 + (product >> _HALF)
        h0, h1, h2, h3 = halves(product, r)
        t0, t1, t2, t3 = t0 + h0, t1 + h1, t2 + h2, t3 + h3
        h0, h1, h2, h3 = halves(pairs[2 * node + 1], r)
        a0, a1, a2, a3 = a0 + h0, a1 + h1, a2 + h2, a3 + h3
        c0, c1 = c0 + (r & mask & _LOW), c1 + ((r & mask) >> _HALF)
    return (
        of_halves(o0, o1, _ZERO, _ZERO),
        of_halves(t0, t1, t2, t3),
        of_halves(a0, a1, a2, a3),
        of_halves(c0, c1, _ZERO, _ZERO),
    )


@inlined
def halves(x: np.uint64, y: np.uint64) -> FourWords:  # pragma: no cover - compiled
    """The product x y as four numbers below 2^34, in steps of 2^32, of which carries are not taken."""
    x0, x1, y0, y1 = x & _LOW, x >> _HALF, y & _LOW, y >> _HALF
    p, q, s, t = x0 * y0, x0 * y1, x1 * y0, x1 * y1
    return p & _LOW, (p >> _HALF) + (q & _LOW) + (s & _LOW), (q >> _HALF) + (s >> _HALF) + (t & _LOW), t >> _HALF


@compiled
def of_halves(h0: np.uint64, h1: np.uint64, h2: np.uint64, h3: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """The element h0 + 2^32 h1 + 2^64 h2 + 2^96 h3 of any four words: 2^96 is -1 in Field64."""
    low = sum64(reduced64(h0, _ZERO), reduced64(h1 << _HALF, h1 >> _HALF))
    return sum64(low, sum64(reduced64(_ZERO, h2), negative64(reduced64(h3, _ZERO))))


@compiled
def finish255(
    values: Words, negative: bool, random: Words, data: Words, sums: Words
) -> None:  # pragma: no cover - compiled
    """For each report, keep the data of `values[report, which, leaf, 4]`, and add the sketch to `sums[report, 3, 4]`.

    The sketch of shares that are to be negated is that of the shares, negated.
    """
    zero = (_ZERO, _ZERO, _ZERO, _ZERO, _ZERO)
    for report in range(values.shape[0]):
        z0, z1, z2 = zero, zero, zero
        numbers, shares, authenticators, kept = random[report], values[report, 0], values[report, 1], data[report]
        for leaf in range(values.shape[2]):
            r = element255(numbers, leaf)
            x = element255(shares, leaf)
            once = product255(x, r)
            z0 = accumulated255(z0, once)
            z1 = accumulated255(z1, product255(once, r))
            z2 = accumulated255(z2, product255(element255(authenticators, leaf), r))
            store255(negative255(x) if negative else x, kept, leaf)
        add_to(z0, negative, sums[report], 0)
        add_to(z1, negative, sums[report], 1)
        add_to(z2, negative, sums[report], 2)


@compiled
def add_to(z: LongSum, negative: bool, sums: Words, row: int) -> None:  # pragma: no cover - compiled
    """Add a sum, or take it away."""
    x = reduced255(z)
    store255(canonical255(sum255(element255(sums, row), negative255(x) if negative else x)), sums, row)
