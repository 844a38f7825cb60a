"""The hash of fixed-key AES-128 over many blocks, by the processor's AES instructions. This module imports numba.

The hash of XofFixedKeyAes128 is H(x) = AES(k, s) xor s with s = (hi, hi xor lo) for a block x = (lo, hi) of two
little-endian words. `AVAILABLE` says whether the processor that numba compiles for has the instructions: AES-NI takes
a block at a time, VAES two. Elsewhere `aes128_bitsliced` does the same.
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from hazemap.machine_code.arrays import Words
from hazemap.machine_code.jit import compiled

WORD = ir.IntType(64)
TRIPLE, _, FEATURES = cpu_target.target_context.codegen().magic_tuple()
AVAILABLE = TRIPLE.startswith("x86_64") and "+aes" in FEATURES.split(",")
WIDE = {"+vaes", "+avx2"} <= set(FEATURES.split(","))
WORDS = 4 if WIDE else 2
"""Words of 64 bits that one instruction takes: two blocks, or one."""
GROUP = 16
"""Blocks that are hashed together: what keeps the pipelines full."""


@intrinsic
def hash_group(_typing: Any, keys: Any, blocks: Any, row: Any) -> Any:
    """Replace the `GROUP` blocks from a row on by their hashes; keys are the 11 round keys, two words each."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The instructions, for registers of `WORDS` words."""
        vector, block = ir.VectorType(WORD, WORDS), ir.VectorType(WORD, 2)
        lanes, nothing = ir.VectorType(ir.IntType(32), WORDS), ir.Constant(vector, ir.Undefined)
        suffix = "" if WORDS == 2 else ".256"

        def instruction(name: str) -> Any:
            name = f"llvm.x86.aesni.{name}{suffix}"
            known = builder.module.globals.get(name)
            return known or ir.Function(builder.module, ir.FunctionType(vector, [vector, vector]), name)

        def at(array: Any, word: Any, kind: Any) -> Any:
            return builder.bitcast(builder.gep(array, [word]), kind.as_pointer())

        def round_key(index: int) -> Any:
            key = builder.load(at(all_keys, ir.Constant(WORD, 2 * index), block), align=8)
            each = ir.Constant(lanes, [lane % 2 for lane in range(WORDS)])
            return builder.shuffle_vector(key, ir.Constant(block, ir.Undefined), each)

        all_keys, rows = (
            context.make_array(kind)(context, builder, array).data
            for kind, array in zip(signature.args[:2], arguments[:2], strict=True)
        )
        first = builder.mul(arguments[2], ir.Constant(WORD, 2))
        places = [at(rows, builder.add(first, ir.Constant(WORD, word)), vector) for word in range(0, 2 * GROUP, WORDS)]
        swapped = ir.Constant(lanes, [lane ^ 1 for lane in range(WORDS)])
        high = ir.Constant(vector, [-(lane % 2) for lane in range(WORDS)])
        for half in range(0, len(places), 8):
            some = places[half : half + 8]
            loaded = [builder.load(place, align=8) for place in some]
            sigma = [builder.xor(builder.shuffle_vector(x, nothing, swapped), builder.and_(x, high)) for x in loaded]
            state = [builder.xor(x, round_key(0)) for x in sigma]
            for index in range(1, 11):
                key = round_key(index)
                state = [builder.call(instruction("aesenc" if index < 10 else "aesenclast"), [x, key]) for x in state]
            for place, x, mask in zip(some, state, sigma, strict=True):
                builder.store(builder.xor(x, mask), place, align=8)
        return context.get_dummy_value()

    return types.void(keys, blocks, row), code


@compiled
def hash_blocks(keys: Words, blocks: Words, count: int) -> None:  # pragma: no cover - compiled
    """Replace the first `count` rows of blocks (uint64, two a row) by their hashes.

    What else is in the last group is hashed too: there are rows up to the next multiple of `GROUP`.
    """
    for row in range(0, count, GROUP):
        hash_group(keys, blocks, row)  # type: ignore[call-arg]
