"""IdpfBBCGGI21 (draft-irtf-cfrg-vdaf-20, 8.3): incremental distributed point functions of two keys, in plain Python.

A client programs one path of a full binary tree of `bits` levels: node `alpha >> (bits - 1 - level)` of each level
bears a value, all other nodes zero. Each of two keys evaluates to an additive share of the value of any node.
Nodes of a level are numbers: that of the path from the root, first step in the highest bit.

Clients make keys with this module. How long Python's whole numbers take depends on them a little: whoever can measure a
device that closely is not defended against. It is the oracle of `poplar1_kernels`, with which servers evaluate many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hazemap.vdaf import field255
from hazemap.vdaf.errors import InputError
from hazemap.vdaf.xofs import TurboShake128, XofFixedKeyAes128, fixed_key

MODULUS_INNER, SIZE_INNER = 2**64 - 2**32 + 1, 8
KEY_SIZE = NONCE_SIZE = 16
RAND_SIZE = 2 * KEY_SIZE
MOST_BITS = 64
EXTEND, CONVERT = 0, 1


class CorrectionWord(NamedTuple):
    """What both servers add at a level where their control bit is set."""

    seed: bytes
    control: tuple[int, int]
    value: tuple[int, ...]


class Node(NamedTuple):
    """One key's state at a node: the seed of its children, its control bit, its share of the value."""

    seed: bytes
    control: int
    value: tuple[int, ...]


@dataclass(frozen=True)
class IdpfBBCGGI21:
    """Point functions on a tree of so many levels, with `value_length` field elements at each node.

    `wire` is the version of the draft: 18, or 8 (draft 08, in which leaves too are made by AES).

    >>> idpf = IdpfBBCGGI21(bits=3)
    >>> words, keys = idpf.gen(0b101, [(1, 7), (1, 8)], (1, 9), b"task", bytes(16), bytes(range(32)))
    >>> shares = [idpf.eval(i, words, keys[i], 1, [0b10, 0b11], b"task", bytes(16)) for i in (0, 1)]
    >>> [[(a + b) % idpf.field(1)[0] for a, b in zip(*pair)] for pair in zip(*shares)]
    [[1, 8], [0, 0]]
    """

    bits: int
    value_length: int = 2
    wire: int = 18

    def __post_init__(self) -> None:
        """Refuse trees of no levels, or of more than a word's bits."""
        if not 1 <= self.bits <= MOST_BITS:
            raise InputError(f"a tree of {self.bits} levels: it has 1 to {MOST_BITS}")
        if self.wire not in (8, 18):
            raise InputError(f"version {self.wire} of the wire: 18 and 8 are known")

    def field(self, level: int) -> tuple[int, int]:
        """Modulus and bytes of the values of a level: a large field at the leaves, so that they are extractable."""
        return (MODULUS_INNER, SIZE_INNER) if level < self.bits - 1 else (field255.MODULUS, field255.SIZE)

    def gen(
        self,
        alpha: int,
        beta_inner: Sequence[Sequence[int]],
        beta_leaf: Sequence[int],
        ctx: bytes,
        nonce: bytes,
        rand: bytes,
    ) -> tuple[list[CorrectionWord], tuple[bytes, bytes]]:
        """Correction words for both servers, and a key for each, of a path and the values along it.

        Cost: 8 blocks of AES a level, and 4 permutations of Keccak at the leaf.
        """
        if not 0 <= alpha < 1 << self.bits:
            raise InputError(f"a path of other than {self.bits} bits")
        if len(rand) != RAND_SIZE or (self.wire == 18 and len(nonce) != NONCE_SIZE):
            raise InputError(f"keys are made of {RAND_SIZE} random bytes and a nonce of {NONCE_SIZE}")
        if len(beta_inner) != self.bits - 1 or any(len(b) != self.value_length for b in (*beta_inner, beta_leaf)):
            raise InputError(f"{self.value_length} values are programmed at each of {self.bits} levels")
        keys = rand[:KEY_SIZE], rand[KEY_SIZE:]
        seeds, control, words = list(keys), [0, 1], []
        for level, beta in enumerate((*beta_inner, beta_leaf)):
            modulus, _ = self.field(level)
            keep = alpha >> (self.bits - 1 - level) & 1
            (s0, t0), (s1, t1) = (self._extend(level, seed, ctx, nonce) for seed in seeds)
            seed_word = _xor(s0[1 - keep], s1[1 - keep])
            control_word = t0[0] ^ t1[0] ^ keep ^ 1, t0[1] ^ t1[1] ^ keep
            shares = []
            for index, (s, t) in enumerate(((s0, t0), (s1, t1))):
                seed = _xor(s[keep], _masked(seed_word, control[index]))
                control[index] = t[keep] ^ control_word[keep] & control[index]
                seeds[index], share = self._convert(level, seed, ctx, nonce)
                shares.append(share)
            sign = 1 - 2 * control[1]
            value = tuple(sign * (b - w0 + w1) % modulus for b, w0, w1 in zip(beta, *shares, strict=True))
            words.append(CorrectionWord(seed_word, control_word, value))
        return words, keys

    def eval(
        self,
        agg_id: int,
        words: Sequence[CorrectionWord],
        key: bytes,
        level: int,
        prefixes: Sequence[int],
        ctx: bytes,
        nonce: bytes,
    ) -> list[tuple[int, ...]]:
        """One server's share of the values of nodes of a level. Cost: up to 3 blocks of AES a node and level."""
        if agg_id not in (0, 1) or not 0 <= level < self.bits or len(words) != self.bits:
            raise InputError(f"server {agg_id}, level {level}, {len(words)} correction words of {self.bits} levels")
        if any(not 0 <= prefix < 2 << level for prefix in prefixes):
            raise InputError(f"a node of level {level} has a path of {level + 1} bits")
        modulus, _ = self.field(level)
        nodes = {(-1, 0): Node(key, agg_id, ())}
        for prefix in prefixes:
            for depth in range(level + 1):
                here = prefix >> (level - depth)
                if (depth, here) not in nodes:
                    parent = nodes[depth - 1, here >> 1]
                    nodes[depth, here] = self._child(depth, parent, words[depth], here & 1, ctx, nonce)
        sign = 1 - 2 * agg_id
        return [tuple(sign * v % modulus for v in nodes[level, prefix].value) for prefix in prefixes]

    def encode_public_share(self, words: Sequence[CorrectionWord]) -> bytes:
        """Control bits, eight a byte, lowest first; then all seeds and all values; in version 08, level by level."""
        bits = [bit for word in words for bit in word.control]
        packed = sum(bit << i for i, bit in enumerate(bits)).to_bytes((len(bits) + 7) // 8, "little")
        seeds = [word.seed for word in words]
        values = [
            b"".join(v.to_bytes(self.field(level)[1], "little") for v in word.value) for level, word in enumerate(words)
        ]
        if self.wire == 8:
            return packed + b"".join(seed + value for seed, value in zip(seeds, values, strict=True))
        return packed + b"".join(seeds) + b"".join(values)

    def _child(self, level: int, parent: Node, word: CorrectionWord, bit: int, ctx: bytes, nonce: bytes) -> Node:
        """The left or right child of a node."""
        seeds, controls = self._extend(level, parent.seed, ctx, nonce)
        seed = _xor(seeds[bit], _masked(word.seed, parent.control))
        control = controls[bit] ^ word.control[bit] & parent.control
        next_seed, value = self._convert(level, seed, ctx, nonce)
        modulus, _ = self.field(level)
        corrected = tuple((v + control * w) % modulus for v, w in zip(value, word.value, strict=True))
        return Node(next_seed, control, corrected)

    def _extend(self, level: int, seed: bytes, ctx: bytes, nonce: bytes) -> tuple[list[bytes], list[int]]:
        """Seeds and control bits of both children, uncorrected; the control bit is the seed's lowest."""
        xof = self._xof(level, seed, EXTEND, ctx, nonce)
        seeds = [xof.next(KEY_SIZE), xof.next(KEY_SIZE)]
        return [bytes([s[0] & 0xFE]) + s[1:] for s in seeds], [s[0] & 1 for s in seeds]

    def _convert(self, level: int, seed: bytes, ctx: bytes, nonce: bytes) -> tuple[bytes, list[int]]:
        """The seed of a node's children, and its value before correction."""
        xof = self._xof(level, seed, CONVERT, ctx, nonce)
        return xof.next(KEY_SIZE), elements(xof, *self.field(level), self.value_length)

    def _xof(self, level: int, seed: bytes, usage: int, ctx: bytes, nonce: bytes) -> XofFixedKeyAes128 | TurboShake128:
        """Fixed-key AES at inner levels; at the leaves a random oracle, for the sake of extractability."""
        dst = bytes([self.wire, 1, 0, 0, 0, 0, 0, usage]) + ctx
        if self.wire == 18 and level == self.bits - 1:
            return TurboShake128(len(dst).to_bytes(2, "little") + dst + bytes([len(seed)]) + seed + nonce, 1)
        return XofFixedKeyAes128(seed, fixed_key(dst, nonce, 2 if self.wire == 18 else 1))


def elements(xof: XofFixedKeyAes128 | TurboShake128, modulus: int, size: int, count: int) -> list[int]:
    """The next field elements of an output: what is not below the modulus is drawn again."""
    drawn: list[int] = []
    while len(drawn) < count:
        x = int.from_bytes(xof.next(size), "little") & (1 << modulus.bit_length()) - 1
        if x < modulus:
            drawn.append(x)
    return drawn


def _xor(a: bytes, b: bytes) -> bytes:
    """Bit by bit."""
    return (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).to_bytes(len(a), "little")


def _masked(word: bytes, control: int) -> bytes:
    """The word where the control bit is set, zeros elsewhere."""
    return bytes(-control & 0xFF & byte for byte in word)
