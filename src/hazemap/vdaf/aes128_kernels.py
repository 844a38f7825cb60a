"""The hash of fixed-key AES-128 over many blocks, as fast as this processor can. This module imports numba.

`hash_blocks(keys, blocks, count)` replaces the first `count` rows of an array (uint64, two a row, with rows up to the
next multiple of `GROUP`) by H(x) = AES(k, s) xor s, where s = (hi, hi xor lo) for x = (lo, hi), little end first.

Where the processor that numba compiles for has AES instructions (`AVAILABLE`), AES-NI takes a block at a time and VAES
two. Elsewhere 64 blocks are hashed at a time: word `planes[bit, byte]` holds that bit of that byte of all 64. There
nothing is looked up in a table and nothing branches, so the time taken says nothing of the blocks. The S-box is the
circuit of Boyar and Peralta (2012, "A small depth-16 circuit for the AES S-box"): 113 gates.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from hazemap.vdaf.compiled_loops import Words, compiled

TOGETHER = 64
ROWS_SHIFTED = np.array([(byte + 4 * (byte % 4)) % 16 for byte in range(16)])
"""Where byte `i` of the state comes from, after ShiftRows; a column is four bytes in a row."""


@compiled
def hash_blocks_bitsliced(keys: Words, blocks: Words, count: int) -> None:  # pragma: no cover - compiled
    """Replace the first `count` rows of blocks (uint64, two a row) by their hashes; keys are 11 rows of two words.

    The twin of `hash_blocks_by_instructions`.
    """
    masks = key_masks(keys)
    sigma = np.zeros((2, TOGETHER), dtype=np.uint64)
    words = np.empty((2, TOGETHER), dtype=np.uint64)
    for first in range(0, count, TOGETHER):
        some = min(TOGETHER, count - first)
        for row in range(some):
            sigma[0, row] = blocks[first + row, 1]
            sigma[1, row] = blocks[first + row, 0] ^ blocks[first + row, 1]
        words[:] = sigma
        encrypt(masks, words)
        for row in range(some):
            blocks[first + row, 0] = words[0, row] ^ sigma[0, row]
            blocks[first + row, 1] = words[1, row] ^ sigma[1, row]


@compiled
def key_masks(keys: Words) -> Words:  # pragma: no cover - compiled
    """Round keys as planes: a word of ones where a bit of a byte is one."""
    masks = np.empty((11, 8, 16), dtype=np.uint64)
    for index in range(11):
        for byte in range(16):
            word = keys[index, byte // 8] >> np.uint64(8 * (byte % 8))
            for bit in range(8):
                masks[index, bit, byte] = np.uint64(0) - ((word >> np.uint64(bit)) & np.uint64(1))
    return masks


@compiled
def encrypt(masks: Words, words: Words) -> None:  # pragma: no cover - compiled
    """AES-128 of 64 blocks in place: `words[half, block]`, little end first."""
    planes = np.empty((8, 16), dtype=np.uint64)
    moved = np.empty((8, 16), dtype=np.uint64)
    transpose(words)
    for byte in range(16):
        for bit in range(8):
            planes[bit, byte] = words[byte // 8, 8 * (byte % 8) + bit] ^ masks[0, bit, byte]
    for index in range(1, 11):
        substitute(planes)
        for bit in range(8):
            for byte in range(16):
                moved[bit, byte] = planes[bit, ROWS_SHIFTED[byte]]
        if index < 10:
            mix_columns(moved, planes)
        else:
            planes[:] = moved
        planes[:] = planes ^ masks[index]
    for byte in range(16):
        for bit in range(8):
            words[byte // 8, 8 * (byte % 8) + bit] = planes[bit, byte]
    transpose(words)


@compiled
def transpose(words: Words) -> None:  # pragma: no cover - compiled
    """Transpose each row of 64 words of 64 bits as a matrix of bits, in place (Warren, Hacker's Delight, 7-3)."""
    for matrix in range(words.shape[0]):
        width, mask = 32, np.uint64(0xFFFFFFFF)
        while width:
            shift = np.uint64(width)
            for block in range(0, 64, 2 * width):
                for row in range(block, block + width):
                    swap = ((words[matrix, row] >> shift) ^ words[matrix, row + width]) & mask
                    words[matrix, row] ^= swap << shift
                    words[matrix, row + width] ^= swap
            width //= 2
            mask ^= mask << np.uint64(width)


@compiled
def mix_columns(old: Words, new: Words) -> None:  # pragma: no cover - compiled
    """MixColumns: byte i becomes 2 b(i) + 3 b(i+1) + b(i+2) + b(i+3), in GF(256), around its column of four."""
    for column in range(0, 16, 4):
        for row in range(4):
            here, right = column + row, column + (row + 1) % 4
            third, last = column + (row + 2) % 4, column + (row + 3) % 4
            carry = old[7, here] ^ old[7, right]
            for bit in range(8):
                twice = old[bit - 1, here] ^ old[bit - 1, right] if bit else carry
                if bit in (1, 3, 4):
                    twice ^= carry
                new[bit, here] = twice ^ old[bit, right] ^ old[bit, third] ^ old[bit, last]


@compiled
def substitute(q: Words) -> None:  # pragma: no cover - compiled
    """SubBytes, in place. Names of wires are the paper's: x and y above, t in the middle, z and s below."""
    for i in range(q.shape[1]):
        x0, x1, x2, x3, x4, x5, x6, x7 = q[7, i], q[6, i], q[5, i], q[4, i], q[3, i], q[2, i], q[1, i], q[0, i]
        y14, y13, y9, y8, t0 = x3 ^ x5, x0 ^ x6, x0 ^ x3, x0 ^ x5, x1 ^ x2
        y1 = t0 ^ x7
        y4, y12, y2, y5 = y1 ^ x3, y13 ^ y14, y1 ^ x0, y1 ^ x6
        y3, t1 = y5 ^ y8, x4 ^ y12
        y15, y20 = t1 ^ x5, t1 ^ x1
        y6, y10, y11 = y15 ^ x7, y15 ^ t0, y20 ^ y9
        y7, y17, y19, y16 = x7 ^ y11, y10 ^ y11, y10 ^ y8, t0 ^ y11
        y21, y18 = y13 ^ y16, x0 ^ y16
        t2, t7, t12 = y12 & y15, y13 & y16, y9 & y11
        t4, t6 = (y3 & y6) ^ t2, (y4 & x7) ^ t2
        t9, t11 = (y5 & y1) ^ t7, (y2 & y7) ^ t7
        t14, t16 = (y14 & y17) ^ t12, (y8 & y10) ^ t12
        t21, t22 = t4 ^ t14 ^ y20, t6 ^ t16 ^ y19
        t23, t24 = t9 ^ t14 ^ y21, t11 ^ t16 ^ y18
        t25, t26, t30 = t21 ^ t22, t21 & t23, t23 ^ t24
        t27, t31 = t24 ^ t26, t22 ^ t26
        t29, t33 = (t25 & t27) ^ t22, (t31 & t30) ^ t24
        t36 = t24 & (t27 ^ t33)
        t37, t38 = t36 ^ t23 ^ t33, t27 ^ t36
        t40 = t25 ^ (t29 & t38)
        t41, t42, t43, t44 = t40 ^ t37, t29 ^ t33, t29 ^ t40, t33 ^ t37
        t45 = t42 ^ t41
        z0, z1, z2, z3, z4, z5 = t44 & y15, t37 & y6, t33 & x7, t43 & y16, t40 & y1, t29 & y7
        z6, z7, z8, z9, z10, z11 = t42 & y11, t45 & y17, t41 & y10, t44 & y12, t37 & y3, t33 & y4
        z12, z13, z14, z15, z16, z17 = t43 & y13, t40 & y5, t29 & y2, t42 & y9, t45 & y14, t41 & y8
        t46, t48, t53, t54 = z15 ^ z16, z5 ^ z13, z0 ^ z3, z6 ^ z7
        t56, t57, t58, t59 = z12 ^ t48, z2 ^ z12 ^ t53, z4 ^ t46, z3 ^ t54
        t60, t61, t62, t63 = t46 ^ t57, z14 ^ t57, z7 ^ z8 ^ t58, z9 ^ z10 ^ t58
        t64, t65, t66 = z4 ^ t59, t61 ^ t62, z1 ^ t63
        s3 = t53 ^ t66
        q[7, i], q[6, i], q[5, i], q[4, i] = t59 ^ t63, ~(t64 ^ s3), ~(z16 ^ z17 ^ t64 ^ t65), s3
        q[3, i], q[2, i], q[1, i], q[0, i] = z2 ^ z5 ^ t66, z10 ^ z11 ^ t65, ~(t56 ^ t62), ~(t48 ^ t60)


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
def hash_blocks_by_instructions(keys: Words, blocks: Words, count: int) -> None:  # pragma: no cover - compiled
    """Replace the first `count` rows of blocks (uint64, two a row) by their hashes.

    What else is in the last group is hashed too: there are rows up to the next multiple of `GROUP`.
    """
    for row in range(0, count, GROUP):
        hash_group(keys, blocks, row)  # type: ignore[call-arg]


hash_blocks: Any = hash_blocks_by_instructions if AVAILABLE else hash_blocks_bitsliced


def _s_box() -> list[int]:
    """The S-box (FIPS 197, 5.1.1): p runs through the powers of 3 in GF(256), q through those of its inverse."""
    box, p, q = [0x63] * 256, 1, 1
    while True:
        p ^= (p << 1 & 0xFF) ^ (0x1B if p & 0x80 else 0)
        for shift in (1, 2, 4):
            q ^= q << shift & 0xFF
        q ^= 0x09 if q & 0x80 else 0
        ring = q << 8 | q
        box[p] = (q ^ ring >> 7 ^ ring >> 6 ^ ring >> 5 ^ ring >> 4 ^ 0x63) & 0xFF
        if p == 1:
            return box


S_BOX = np.array(_s_box(), dtype=np.uint64)
ROUND_CONSTANTS = np.array([1, 2, 4, 8, 16, 32, 64, 128, 27, 54], dtype=np.uint64)


@compiled
def expand_key(low: np.uint64, high: np.uint64, keys: Words) -> None:  # pragma: no cover - compiled
    """Write the 11 round keys of a key of two words (uint64[11, 2]). The key is public, so a table may be read."""
    byte, half = np.uint64(0xFF), np.uint64(32)
    word = np.uint64(0xFFFFFFFF)
    w = np.empty(44, dtype=np.uint64)
    w[0], w[1], w[2], w[3] = low & word, low >> half, high & word, high >> half
    for i in range(4, 44):
        last = w[i - 1]
        if i % 4 == 0:  # RotWord, SubWord and the round constant
            last = (
                S_BOX[(last >> np.uint64(8)) & byte]
                | S_BOX[(last >> np.uint64(16)) & byte] << np.uint64(8)
                | S_BOX[last >> np.uint64(24)] << np.uint64(16)
                | S_BOX[last & byte] << np.uint64(24)
            ) ^ ROUND_CONSTANTS[i // 4 - 1]
        w[i] = w[i - 4] ^ last
    for row in range(11):
        for column in range(2):
            keys[row, column] = w[4 * row + 2 * column] | w[4 * row + 2 * column + 1] << half
