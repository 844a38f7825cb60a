"""A step down the trees of point functions by the processor's AES instructions. This module imports numba.

A node is four words: its seed, and its control bit twice, as words of ones or zeros. All that becomes of a node in a
step stays in registers: the hash that extends it, its correction, and the hash that converts it. The twin for other
processors is in `idpf_kernels`; `aes128_instructions` has the hash alone, and says what the processor can.
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from hazemap.machine_code.arrays import Ints, Words
from hazemap.machine_code.jit import compiled
from hazemap.vdaf.aes128_instructions import GROUP, WORD, WORDS

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
def step_nodes(
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
